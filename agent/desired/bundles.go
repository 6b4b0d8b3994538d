package desired

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
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

// ErrFetching means that a bundle is being downloaded. Arrived is called after the download, successful or
// not.
var ErrFetching = errors.New("the bundle is being downloaded")

// patience limits the wait of Open for the first bundle that it downloads. Most downloads are shorter. A slow
// server must not block the node.
const patience = 2 * time.Second

// runsWait limits the wait of runs for a repeated download. A slow server must not block the node.
const runsWait = time.Minute

type fetch struct {
	cancel context.CancelFunc
	temp   string
	began  time.Time
	// settled is set by the end of the download or by Open when it stops waiting, whichever is first. If the
	// end is second, it calls Arrived, so that each result is used exactly once.
	settled atomic.Bool

	// done is closed at the end, with at most one of the errors below: err is transient, invalid means that
	// the bytes are no valid bundle.
	done         chan struct{}
	err, invalid error
	// known means that Open returned the result.
	known bool
}

// Fetching reports whether a bundle is being downloaded.
func (b *Bundles) Fetching() bool {
	for _, f := range b.fetches {
		if !f.isDone() {
			return true
		}
	}

	return false
}

func (b *Bundles) begin(ctx context.Context, digest string, waits bool) (*fetch, error) {
	temp, err := b.Host.TempDir("bundle")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &fetch{cancel: cancel, temp: temp, began: time.Now(), done: make(chan struct{})}
	f.settled.Store(!waits)
	if b.fetches == nil {
		b.fetches = map[string]*fetch{}
	}
	b.fetches[digest] = f
	b.all.Go(func() {
		f.err = tasks.Guard(b.Log, "fetching bundle "+digest, func() error { return b.fetch(ctx, digest, f) })
		close(f.done)
		if !f.settled.CompareAndSwap(false, true) {
			b.Arrived()
		}
	})

	return f, nil
}

func (b *Bundles) fetch(ctx context.Context, digest string, f *fetch) error {
	packed, err := os.Create(filepath.Join(f.temp, "packed"))
	if err != nil {
		return err
	}
	defer packed.Close()
	if err := b.download(ctx, digest, packed); err != nil {
		return err
	}
	if err := os.Mkdir(f.tree(), 0o700); err != nil {
		return err
	}
	err = archive.Unpack(ctx, packed, f.tree(), archive.Limits{})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		f.invalid = err
		return nil
	}

	return seal(ctx, f.tree())
}

func (f *fetch) tree() string { return filepath.Join(f.temp, "tree") }

// await waits for the end for at most patience, and reports whether it came.
func (f *fetch) await(ctx context.Context) bool {
	select {
	case <-f.done:
		return true
	case <-time.After(patience):
	case <-ctx.Done():
	}
	if f.settled.CompareAndSwap(false, true) {
		return false
	}
	<-f.done

	return true
}

func (f *fetch) isDone() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// drop stops the downloads of unused bundles. Their files are removed when they have ended.
func (b *Bundles) drop(ctx context.Context, used map[string]bool) {
	for digest, f := range b.fetches {
		if used[digest] {
			continue
		}
		f.cancel()
		if f.isDone() {
			_ = b.Host.RemoveAll(ctx, f.temp) // the next start removes it
			delete(b.fetches, digest)
		}
	}
}

// Close stops all downloads and waits for their end.
func (b *Bundles) Close(ctx context.Context) {
	b.drop(ctx, nil)
	b.all.Wait()
	b.drop(ctx, nil)
}

// sealName is the file in an unpacked bundle that lists its content.
const sealName = ".muster-bundle"

// seal writes the content of a bundle, one line per entry, so that IsIntact detects missing and changed
// entries.
func seal(ctx context.Context, dir string) error {
	path := filepath.Join(dir, sealName)
	// The bundle may contain this name, even as a link.
	if err := paths.RemoveTree(ctx, path); err != nil {
		return err
	}
	var lines bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		line, err := describe(dir, name)
		fmt.Fprintln(&lines, line)
		return err
	})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(lines.Bytes())

	return errors.Join(err, f.Close())
}

// IsIntact reports whether all unpacked entries of a bundle are unchanged. Additional files do not matter.
func IsIntact(dir string) bool {
	sealed, err := os.ReadFile(filepath.Join(dir, sealName))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(sealed)) {
		line = strings.TrimSuffix(line, "\n")
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return false
		}
		name, err := strconv.Unquote(quoted)
		if err != nil {
			return false
		}
		if now, err := describe(dir, name); err != nil || now != line {
			return false
		}
	}

	return len(sealed) > 0
}

// describe returns the line of an entry. It changes if the entry is replaced, written or its mode changes.
func describe(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%q %o", name, uint32(info.Mode()))
	switch {
	case info.Mode().IsRegular():
		line += fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return line + fmt.Sprintf(" %q", target), err
	}

	return line, nil
}
