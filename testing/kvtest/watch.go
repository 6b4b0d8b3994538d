package kvtest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
)

// Never is longer than any test: what must not be the reason for a success.
const Never = 24 * time.Hour

// Watching is a watch that runs.
type Watching struct {
	*watch.Watch
	Stop func()

	// get reads a key.
	get    func(ctx context.Context, key string) (model.Entry, error)
	mu     sync.Mutex
	woken  []string
	wakes  int
	values map[string]model.Entry
	// atLastWake are the entries at the last wake.
	atLastWake map[string]model.Entry
}

// Watch runs the watch of a node until the test ends or Stop is called.
func Watch(t testing.TB, s *Store, o watch.Options) *Watching {
	t.Helper()

	return WatchSince(t, s, o, model.Memory{})
}

// WatchSince is Watch for a node that remembers something.
func WatchSince(t testing.TB, s *Store, o watch.Options, last model.Memory) *Watching {
	t.Helper()

	return run(t, watch.New(s.Store, quiet(o)), s.Get, o, last)
}

// WatchControl watches what operators write about a node until the test ends.
func WatchControl(t testing.TB, s *Store, o watch.Options, last model.Memory) *Watching {
	t.Helper()

	return run(t, watch.NewControl(s.Store, quiet(o)), kvstore.NewControl(s.Store).Get, o, last)
}

// quiet has a watch log nothing.
func quiet(o watch.Options) watch.Options {
	o.Log = slog.New(slog.DiscardHandler)

	return o
}

func run(t testing.TB, w *watch.Watch, get func(context.Context, string) (model.Entry, error), o watch.Options, last model.Memory) *Watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	running := &Watching{Watch: w, get: get, values: maps.Clone(last.Entries)}
	if running.values == nil {
		running.values = map[string]model.Entry{}
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, last, running.wake) }()
	running.Stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("watch of %s ended with %v", o.Node, err)
		}
	})
	t.Cleanup(running.Stop)

	return running
}

func (w *Watching) wake(keys []string) {
	entries := w.read()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.atLastWake = entries
	w.wakes++
	w.woken = append(w.woken, keys...)
}

// read reads the values of the entries, as a node does that is woken, and returns
// the entries with them.
func (w *Watching) read() map[string]model.Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	entries, _ := w.Entries()
	for key, e := range entries {
		if known := w.values[key]; known.Revision != e.Revision || !known.Time.Equal(e.Time) {
			// A later revision is read when the watch knows of it.
			found, err := w.get(context.Background(), key)
			if err != nil || found.Revision != e.Revision {
				continue
			}
			w.values[key] = found
		}
		entries[key] = w.values[key]
	}

	return entries
}

// Memory returns what the watch remembers, with the values that were read.
func (w *Watching) Memory() model.Memory {
	m := w.Watch.Memory()
	m.Entries = w.read()

	return m
}

// Wakes returns how often the listener was woken, and for which keys.
func (w *Watching) Wakes() (int, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.wakes, slices.Clone(w.woken)
}

// AtLastWake returns the entries in force when the listener was last woken: it is woken for no
// entry any more once these are the last.
func (w *Watching) AtLastWake() map[string]model.Entry {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.atLastWake
}

// Has waits until the watch has exactly these "key=value" in force.
func (w *Watching) Has(t testing.TB, want ...string) {
	t.Helper()
	Eventually(t, "entries in force", func() (bool, string) {
		entries := w.read()
		_, state := w.Entries()
		var got []string
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			got = append(got, key+"="+string(entries[key].Value))
		}

		return slices.Equal(got, want), fmt.Sprintf("%v, %+v, want %v", got, state, want)
	})
}

// Synced waits until the watch knows everything.
func (w *Watching) Synced(t testing.TB) {
	t.Helper()
	Eventually(t, "first comparison", func() (bool, string) {
		_, state := w.Entries()
		return !state.At.IsZero(), fmt.Sprintf("%+v", state)
	})
}

// WokenBy waits until the watch has woken its listener for a key.
func (w *Watching) WokenBy(t testing.TB, key string) {
	t.Helper()
	Eventually(t, "wake", func() (bool, string) {
		w.mu.Lock()
		defer w.mu.Unlock()

		return slices.Contains(w.woken, key), fmt.Sprint(w.woken)
	})
}

// Keeps waits until the watch keeps exactly these keys.
func (w *Watching) Keeps(t testing.TB, want ...string) {
	t.Helper()
	Eventually(t, "keys kept", func() (bool, string) {
		_, state := w.Entries()
		return slices.Equal(state.Kept, want), fmt.Sprintf("%v, want %v", state, want)
	})
}
