package state_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/testing/actor"
	"github.com/musterfleet/muster/testing/hosttest"
)

func TestLockNamesWhoHoldsIt(t *testing.T) {
	h := hosttest.New(t)
	if _, held, err := h.HolderOf(0); held || err != nil {
		t.Fatalf("before anything: %v, %v", held, err)
	}
	other := actor.Play(t, "holder", h.StateDir())
	holder, held, err := h.HolderOf(0)
	if err != nil || !held || holder.PID != other.PID() || holder.Command != "muster apply" || holder.RunID != "run1" || holder.Since.IsZero() {
		t.Errorf("the holder is %+v, %v, %v", holder, held, err)
	}
	_, err = h.Lock(t.Context(), state.LockOptions{})
	var locked state.LockedError
	if !errors.Is(err, state.ErrLocked) || !errors.As(err, &locked) || locked.Holder != holder {
		t.Errorf("the error is %v", err)
	}
	for _, word := range []string{"another run holds the lock", "muster apply", other.String(), "run1"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
	other.End(t)
	if holder, held, err := h.HolderOf(0); held || err != nil {
		t.Errorf("after its end: %+v, %v, %v", holder, held, err)
	}
}

func TestLockOfADeadProcessNeverBlocks(t *testing.T) {
	h := hosttest.New(t)
	actor.Play(t, "holder", h.StateDir()).Kill()
	if content, err := os.ReadFile(filepath.Join(h.StateDir(), "run.lock")); err != nil || len(content) == 0 {
		t.Fatalf("the dead holder left %q: %v", content, err)
	}
	if holder, held, err := h.HolderOf(0); held || err != nil {
		t.Errorf("it still holds it: %+v, %v", holder, err)
	}
	unlock, err := h.Lock(t.Context(), state.LockOptions{Holder: state.LockHolder{Command: "me"}})
	if err != nil {
		t.Fatal(err)
	}
	if holder, held, err := h.HolderOf(0); !held || holder.Command != "me" || holder.PID != os.Getpid() || err != nil {
		t.Errorf("the holder is %+v, %v, %v", holder, held, err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

func TestLockWaits(t *testing.T) {
	h := hosttest.New(t)
	other := actor.Play(t, "holder", h.StateDir())
	waits := 0
	unlock, err := h.Lock(t.Context(), state.LockOptions{Wait: true, OnWait: func(holder state.LockHolder) {
		waits++
		if holder.PID != other.PID() {
			t.Errorf("waits for %+v", holder)
		}
		other.End(t)
	}})
	if err != nil || waits != 1 {
		t.Fatalf("said %d times that it waits: %v", waits, err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

func TestLockWaitEndsWithItsContext(t *testing.T) {
	h := hosttest.New(t)
	actor.Play(t, "holder", h.StateDir())
	stopped := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := h.Lock(ctx, state.LockOptions{Wait: true, OnWait: func(state.LockHolder) { cancel(stopped) }})
	if !errors.Is(err, stopped) || !strings.Contains(err.Error(), "muster apply") {
		t.Errorf("the error is %v", err)
	}
}

func TestLockErrors(t *testing.T) {
	without := state.NewLocks("")
	if _, err := without.Lock(t.Context(), state.LockOptions{}); !errors.Is(err, state.ErrNone) {
		t.Errorf("without a state directory: %v", err)
	}
	if _, _, err := without.HolderOf(0); !errors.Is(err, state.ErrNone) {
		t.Errorf("without a state directory: %v", err)
	}
	if got := (state.LockedError{}).Error(); got != "another run holds the lock: an unknown process" {
		t.Errorf("a holder that has not said who it is: %s", got)
	}
	linked := t.TempDir()
	if err := os.Symlink("elsewhere", filepath.Join(linked, "run.lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := state.NewLocks(linked).Lock(t.Context(), state.LockOptions{}); err == nil {
		t.Error("a lock was made through a link")
	}
}

func TestLocksWithinARun(t *testing.T) {
	h := hosttest.New(t)
	take := func(depth int, run string) (unlock func() error) {
		t.Helper()
		unlock, err := h.Lock(t.Context(), state.LockOptions{Depth: depth, Holder: state.LockHolder{RunID: run}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unlock() })
		return unlock
	}
	holding := func(want int, runs ...string) {
		t.Helper()
		if got, err := h.Holding(runs); got != want || err != nil {
			t.Errorf("%v: %d hold their locks, not %d: %v", runs, got, want, err)
		}
	}
	release := func(unlock func() error) {
		t.Helper()
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}
	held := func(depth int, by string) {
		t.Helper()
		var locked state.LockedError
		if _, err := h.Lock(t.Context(), state.LockOptions{Depth: depth}); !errors.As(err, &locked) || locked.Holder.RunID != by {
			t.Errorf("the lock %d is not held by %s: %v", depth, by, err)
		}
	}
	holding(0, "a", "b")
	a := take(0, "a")
	b := take(1, "b")
	c := take(2, "c")
	holding(3, "a", "b", "c")
	holding(3, "a", "b", "c", "d")
	holding(2, "a", "b", "other")
	holding(3, "a", "other", "c")
	holding(0)
	holding(0, "other")
	held(1, "b")
	// The next run waits for a process that outlived its run.
	release(b)
	holding(3, "a", "b", "c")
	held(1, "c")
	release(a)
	held(0, "c")
	holding(3, "a", "b", "c")
	release(c)
	holding(0, "a", "b", "c")
	take(0, "n")
	holding(1, "n", "b")
	take(1, "m")
	if _, err := state.NewLocks("").Holding([]string{"a"}); !errors.Is(err, state.ErrNone) {
		t.Errorf("without a state directory: %v", err)
	}
}

// TestReleasedWhileAProcessIsStarted: a starting process briefly holds copies of the descriptors. A released
// lock is still free.
func TestReleasedWhileAProcessIsStarted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := state.NewLocks(dir)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := command.New(nil).Run(ctx, command.Command{Argv: []string{"true"}}); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 200 {
		unlock, err := l.Lock(t.Context(), state.LockOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		if holder, held, err := l.HolderOf(0); held || err != nil {
			t.Fatalf("it is held by %s (%v)", holder, err)
		}
	}
}
