// Package bundles keeps the bundles that a node is assigned, fetched and unpacked.
package bundles

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/files"
)

// maxManifest bounds the manifest of a bundle.
const maxManifest = 64 << 20

// Source opens bundles.
type Source interface {
	// GetBundle opens a bundle by its digest, sha256-<hex>. Every error may pass.
	GetBundle(ctx context.Context, digest string) (io.ReadCloser, error)
}

// Store keeps unpacked bundles by digest, one directory each, as long as an
// assignment uses them.
type Store struct {
	Host   *host.Host
	Source Source
	Dir    string
}

// Open returns the directory of a bundle and its manifest, and fetches it when it
// is missing or damaged; a damaged one that cannot be fetched is used as it is.
// Invalid bytes are model.Problems; another error may pass.
func (b *Store) Open(ctx context.Context, key, digest string) (dir string, text []byte, err error) {
	dir = filepath.Join(b.Dir, digest)
	var unfetched error
	if !IsIntact(dir) {
		unfetched = b.fetch(ctx, key, digest, dir)
	}
	text, err = files.Read(filepath.Join(dir, model.BundleManifest), maxManifest)
	switch {
	case err == nil:
		return dir, text, nil
	case unfetched != nil:
		return "", nil, unfetched
	default:
		return "", nil, model.ProblemAt(model.Position{File: key}, "a bundle has a "+model.BundleManifest+" at its root", "bundle %s: %v", digest, err)
	}
}

// fetch unpacks a bundle beside its place and moves it there once its digest is
// known to be right: what is under a digest is always complete.
func (b *Store) fetch(ctx context.Context, key, digest, dir string) error {
	temp, err := b.Host.TempDir("bundle")
	if err != nil {
		return err
	}
	defer b.Host.RemoveAll(context.WithoutCancel(ctx), temp)
	packed, err := os.Create(filepath.Join(temp, "packed"))
	if err != nil {
		return err
	}
	defer packed.Close()
	if err := b.download(ctx, digest, packed); err != nil {
		return err
	}
	tree := filepath.Join(temp, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return err
	}
	err = archive.Unpack(ctx, packed, tree, archive.Limits{})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return model.ProblemAt(model.Position{File: key}, "pack it again", "bundle %s: %v", digest, err)
	}
	err = errors.Join(seal(tree), b.Host.MakeDirectory(b.Dir, files.OwnAttrs(0o700)), b.Host.RemoveAll(ctx, dir))
	if err != nil {
		return err
	}

	return os.Rename(tree, dir)
}

// download writes a bundle to a file, which is at its beginning afterwards.
func (b *Store) download(ctx context.Context, digest string, to *os.File) error {
	r, err := b.Source.GetBundle(ctx, digest)
	if err != nil {
		return fetchError(digest, err)
	}
	defer r.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), r); err != nil {
		return fetchError(digest, err)
	}
	if got := model.DigestFrom(sum); got != digest {
		return fmt.Errorf("fetch bundle %s: the digest does not match, the content has %s", digest, got)
	}
	_, err = to.Seek(0, io.SeekStart)

	return err
}

// shortDigest is how much of a digest tells bundles apart for a reader.
const shortDigest = len(model.DigestPrefix) + 12

// fetchError is a bundle that could not be fetched. It names the bundle once, and
// short, however often the error behind it does.
func fetchError(digest string, err error) error {
	why := strings.NewReplacer(
		"bundle "+digest+": ", "", digest, "…", base64.URLEncoding.EncodeToString([]byte(digest)), "…",
	).Replace(err.Error())

	return errors.New("fetch bundle " + digest[:min(len(digest), shortDigest)] + ": " + why)
}

// Keep removes the bundles that no assignment uses.
func (b *Store) Keep(ctx context.Context, used map[string]bool) error {
	entries, err := os.ReadDir(b.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !used[e.Name()] {
			errs = append(errs, b.Host.RemoveAll(ctx, filepath.Join(b.Dir, e.Name())))
		}
	}

	return errors.Join(errs...)
}
