package desired

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// maxManifest limits the manifest of a bundle.
const maxManifest = 64 << 20

// Source opens bundles.
type BundleSource interface {
	// GetBundle opens a bundle by its digest, sha256-<hex>. All errors are transient.
	GetBundle(ctx context.Context, digest string) (io.ReadCloser, error)
}

// Store stores unpacked bundles by digest, one directory each, as long as an assignment uses them. One
// goroutine calls its methods. Close ends it.
type Bundles struct {
	Host   *host.Host
	Source BundleSource
	Dir    string
	// Arrived is called by any goroutine after a download for which Open returned ErrFetching.
	Arrived func()
	Log     *slog.Logger

	fetches map[string]*fetch
	all     sync.WaitGroup
}

// Open returns the directory of a bundle and its manifest. It downloads a missing or damaged bundle, and
// returns ErrFetching while this takes long. It returns a damaged bundle if the download fails. Invalid bytes
// are model.Problems. Other errors are transient and stay the same until Forget.
func (b *Bundles) Open(ctx context.Context, key, digest string) (dir string, text []byte, err error) {
	dir = filepath.Join(b.Dir, digest)
	var unfetched error
	if !IsIntact(dir) {
		unfetched = b.obtain(ctx, key, digest, dir)
	}
	if errors.Is(unfetched, ErrFetching) {
		return "", nil, unfetched
	}
	text, err = ReadManifest(dir)
	switch {
	case err == nil:
		return dir, text, nil
	case unfetched != nil:
		return "", nil, unfetched
	default:
		return "", nil, model.ProblemAt(model.Position{File: key}, "a bundle has a "+model.BundleManifest+" at its root", "bundle %s: %v", digest, err)
	}
}

// ReadManifest returns the manifest of an unpacked bundle.
func ReadManifest(dir string) ([]byte, error) {
	return files.Read(filepath.Join(dir, model.BundleManifest), maxManifest)
}

// Restore downloads a missing or damaged bundle again. It returns ErrFetching while this takes long and a run
// should wait. It returns nil if the download fails or takes too long.
func (b *Bundles) Restore(ctx context.Context, key, digest string) error {
	_, _, err := b.Open(ctx, key, digest)
	if errors.Is(err, ErrFetching) && time.Since(b.fetches[digest].began) < runsWait {
		return err
	}

	return nil
}

// obtain moves a bundle to its place after its digest is verified, so that a directory with a digest is
// always complete.
func (b *Bundles) obtain(ctx context.Context, key, digest, dir string) error {
	f, ended := b.fetches[digest], false
	if f != nil {
		ended = f.isDone()
	} else {
		waits := len(b.fetches) == 0
		var err error
		if f, err = b.begin(ctx, digest, waits); err != nil {
			return err
		}
		ended = waits && f.await(ctx)
	}
	if !ended {
		return fmt.Errorf("%w: %s", ErrFetching, short(digest))
	}
	defer b.Host.RemoveAll(context.WithoutCancel(ctx), f.temp)
	f.known = true
	switch {
	case f.invalid != nil:
		return model.ProblemAt(model.Position{File: key}, "pack it again", "bundle %s: %v", digest, f.invalid)
	case f.err != nil:
		return f.err
	}
	if f.err = b.place(ctx, f.tree(), dir); f.err != nil {
		return f.err
	}
	delete(b.fetches, digest)

	return nil
}

// place moves an unpacked bundle to its directory and replaces the old one.
func (b *Bundles) place(ctx context.Context, tree, dir string) error {
	if err := errors.Join(b.Host.MakeDirectory(b.Dir, files.OwnAttrs(0o700)), b.Host.RemoveAll(ctx, dir)); err != nil {
		return err
	}

	return os.Rename(tree, dir)
}

// Forget clears failed downloads, so that Open tries again.
func (b *Bundles) Forget() {
	maps.DeleteFunc(b.fetches, func(_ string, f *fetch) bool { return f.known })
}

// download writes a bundle to a file and rewinds it.
func (b *Bundles) download(ctx context.Context, digest string, to *os.File) error {
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

// shortDigest is the length of a digest in messages.
const shortDigest = len(model.DigestPrefix) + 12

// fetchError is the error of a download. It names the bundle once with a short digest, even if the cause
// repeats it.
func fetchError(digest string, err error) error {
	why := strings.NewReplacer(
		"bundle "+digest+": ", "", digest, "…", base64.URLEncoding.EncodeToString([]byte(digest)), "…",
	).Replace(err.Error())

	return errors.New("fetch bundle " + short(digest) + ": " + why)
}

func short(digest string) string { return digest[:min(len(digest), shortDigest)] }

// Keep removes unused bundles and stops their downloads.
func (b *Bundles) Keep(ctx context.Context, used map[string]bool) error {
	b.drop(ctx, used)
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
