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

// ErrFetching is a bundle that is being downloaded: Arrived is called when that has
// ended, well or not.
var ErrFetching = errors.New("the bundle is being downloaded")

// patience is how long Open waits for the first bundle that it fetches. Most are there
// by then. A server may send many slowly, and the node has other work.
const patience = 2 * time.Second

// runsWait is how long runs wait for a bundle that is fetched again. A server that sends
// slowly must not keep the node from its work.
const runsWait = time.Minute

// fetch is one bundle that is fetched, by a goroutine of its own.
type fetch struct {
	cancel context.CancelFunc
	// temp is where it is unpacked.
	temp  string
	began time.Time
	// settled is set by the first of two: its end, or Open that does not wait any more. An
	// end that comes second calls Arrived, so that no result is fetched twice or never.
	settled atomic.Bool

	// done is closed when it has ended, with one of the errors below or none: err may
	// pass, invalid says why the bytes are no bundle.
	done         chan struct{}
	err, invalid error
	// known is set once Open returned its result.
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

// begin starts to fetch a bundle, which Open waits for or not.
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

// fetch downloads a bundle and unpacks it beside its place.
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

// tree is where the files of the bundle are.
func (f *fetch) tree() string { return filepath.Join(f.temp, "tree") }

// await waits for the end, but no longer than patience, and reports whether it came.
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

// isDone reports whether the fetch has ended.
func (f *fetch) isDone() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// drop ends the fetches of bundles that are not used. What is left of one is removed
// once it has ended.
func (b *Bundles) drop(ctx context.Context, used map[string]bool) {
	for digest, f := range b.fetches {
		if used[digest] {
			continue
		}
		f.cancel()
		if f.isDone() {
			_ = b.Host.RemoveAll(ctx, f.temp) // the next run removes it after the agent's end
			delete(b.fetches, digest)
		}
	}
}

// Close ends all fetches and waits for that.
func (b *Bundles) Close(ctx context.Context) {
	b.drop(ctx, nil)
	b.all.Wait()
	b.drop(ctx, nil)
}
