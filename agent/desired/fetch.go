package desired

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/resources/host/archive"
)

// ErrFetching means that a bundle is being downloaded. Arrived is called after the download, successful or
// not.
var ErrFetching = errors.New("the bundle is being downloaded")

// patience limits the wait of Open for the first bundle that it downloads. Most downloads are shorter. A slow
// server must not block the node.
const patience = 2 * time.Second

// runsWait limits the wait of runs for a repeated download. A slow server must not block the node.
const runsWait = time.Minute

// fetch is a download with its goroutine.
type fetch struct {
	cancel context.CancelFunc
	// temp is the directory of the unpacked files.
	temp  string
	began time.Time
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

// begin starts a download.
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

// fetch downloads a bundle and unpacks it beside its final directory.
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

// tree is the directory of the bundle's files.
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

// isDone reports whether the download has ended.
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
