package assignments

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

// bundleManifest is the manifest at the root of a bundle.
const bundleManifest = "manifest.yaml"

// BundleSource opens bundles.
type BundleSource interface {
	// GetBundle opens a bundle by its digest, sha256-<hex>. Every error may pass.
	GetBundle(ctx context.Context, digest string) (io.ReadCloser, error)
}

// errNoBundles is a bundle where there is nothing to fetch it from.
var errNoBundles = errors.New("bundles cannot be fetched here")

// bundles keeps unpacked bundles by digest, one directory each, as long as an
// assignment uses them.
type bundles struct {
	host   *host.Host
	source BundleSource
	dir    string
}

// open returns the directory of a bundle and its manifest, and fetches it when it
// is missing. Invalid bytes are model.Problems; another error may pass.
func (b *bundles) open(ctx context.Context, key, digest string) (dir string, text []byte, err error) {
	dir = filepath.Join(b.dir, digest)
	if _, err := os.Lstat(dir); err != nil {
		if err := b.fetch(ctx, key, digest, dir); err != nil {
			return "", nil, err
		}
	}
	text, err = b.host.Read(filepath.Join(dir, bundleManifest), maxStored)
	if err != nil {
		return "", nil, model.ProblemAt(model.Position{File: key}, "a bundle has a "+bundleManifest+" at its root", "bundle %s: %v", digest, err)
	}

	return dir, text, nil
}

// fetch unpacks a bundle beside its place and moves it there once its digest is
// known to be right: what is under a digest is always complete.
func (b *bundles) fetch(ctx context.Context, key, digest, dir string) error {
	if b.source == nil {
		return errNoBundles
	}
	r, err := b.source.GetBundle(ctx, digest)
	if err != nil {
		return fetchError{digest, err}
	}
	defer r.Close()
	temp, err := b.host.TempDir("bundle")
	if err != nil {
		return err
	}
	defer b.host.RemoveAll(temp)
	sum := sha256.New()
	source := &readError{r: io.TeeReader(r, sum)}
	unpackErr := archive.Unpack(ctx, source, temp, archive.Limits{})
	// The digest tells bytes that were damaged on their way from a bundle that is wrong.
	_, _ = io.Copy(io.Discard, source)
	got := model.DigestFrom(sum)
	switch {
	case source.err != nil || ctx.Err() != nil:
		return fetchError{digest, errors.Join(source.err, context.Cause(ctx))}
	case got != digest:
		return fmt.Errorf("fetch bundle %s: what came is %s", digest, got)
	case unpackErr != nil:
		return model.ProblemAt(model.Position{File: key}, "pack it again", "bundle %s: %v", digest, unpackErr)
	}
	if err := b.host.MakeDirectory(b.dir, files.OwnAttrs(0o700)); err != nil {
		return err
	}

	return os.Rename(temp, dir)
}

// fetchError is a bundle that could not be fetched. It names the bundle once, and short,
// however often the error behind it does.
type fetchError struct {
	digest string
	err    error
}

// shortDigest is how much of a digest tells bundles apart for a reader.
const shortDigest = len(model.DigestPrefix) + 12

// Error names the bundle, and the reason.
func (e fetchError) Error() string {
	why := strings.NewReplacer(
		"bundle "+e.digest+": ", "", e.digest, "…", base64.URLEncoding.EncodeToString([]byte(e.digest)), "…",
	).Replace(e.err.Error())

	return "fetch bundle " + e.digest[:min(len(e.digest), shortDigest)] + ": " + why
}

// Unwrap returns the error behind it.
func (e fetchError) Unwrap() error { return e.err }

// keep removes the bundles that no assignment uses.
func (b *bundles) keep(used map[string]bool) error {
	entries, err := os.ReadDir(b.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !used[e.Name()] {
			errs = append(errs, b.host.RemoveAll(filepath.Join(b.dir, e.Name())))
		}
	}

	return errors.Join(errs...)
}

// readError remembers the error of reading, to tell it from invalid bytes.
type readError struct {
	r   io.Reader
	err error
}

// Read reads on.
func (s *readError) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}

	return n, err
}
