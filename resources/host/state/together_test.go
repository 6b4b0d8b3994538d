package state_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/testing/actor"
)

// together takes the lock of a directory for a run of this process, beside others.
func together(t *testing.T, l *state.Locks, run string) (unlock func()) {
	t.Helper()
	release, err := l.LockTogether(t.Context(), state.LockOptions{Holder: state.LockHolder{Command: "muster agent", RunID: run}})
	if err != nil {
		t.Fatal(err)
	}

	return func() {
		t.Helper()
		if err := release(); err != nil {
			t.Error(err)
		}
	}
}

// TestRunsHoldTheLockTogether: each of them is its holder for what its commands start, and
// others get it with the end of the last.
func TestRunsHoldTheLockTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l, other := state.NewLocks(dir), state.NewLocks(dir)
	is := func(run string, want int) {
		t.Helper()
		if depth, err := other.Holding([]string{run}); depth != want || err != nil {
			t.Errorf("within %s the depth is %d (%v), want %d", run, depth, err, want)
		}
	}
	one := together(t, l, "one")
	is("one", 1)
	two, three := together(t, l, "two"), together(t, l, "three")
	is("one", 1)
	is("two", 1)
	is("three", 1)
	one()
	one() // again is nothing
	is("one", 0)
	is("two", 1)
	is("three", 1)
	if _, err := other.Lock(t.Context(), state.LockOptions{}); !errors.Is(err, state.ErrLocked) {
		t.Errorf("another got it: %v", err)
	}
	if holder, _, err := other.HolderOf(0); holder.Since.IsZero() || err != nil {
		t.Errorf("the holder is %+v (%v), want the time since when it holds the lock", holder, err)
	}
	three()
	two()
	unlock, err := other.Lock(t.Context(), state.LockOptions{})
	if err != nil {
		t.Fatalf("after the last: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	one = together(t, l, "one")
	is("one", 1)
	one()
}

// TestNobodyJoinsWhileOthersWait: who waits for runs that hold the lock together is next.
func TestNobodyJoinsWhileOthersWait(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l, other := state.NewLocks(dir), state.NewLocks(dir)
	one := together(t, l, "one")
	waits, got := make(chan struct{}), make(chan func() error, 1)
	go func() {
		unlock, err := other.Lock(t.Context(), state.LockOptions{Wait: true, OnWait: func(state.LockHolder) { close(waits) }})
		if err != nil {
			t.Error(err)
		}
		got <- unlock
	}()
	<-waits
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	refused := make(chan error, 1)
	go func() {
		_, err := l.LockTogether(ctx, state.LockOptions{Holder: state.LockHolder{RunID: "two"}})
		refused <- err
	}()
	second, joined := make(chan struct{}), make(chan func() error, 1)
	go func() {
		unlock, err := l.LockTogether(t.Context(), state.LockOptions{Holder: state.LockHolder{RunID: "three"}, OnWait: func(state.LockHolder) { close(second) }})
		if err != nil {
			t.Error(err)
		}
		joined <- unlock
	}()
	enough := errors.New("enough")
	cancel(enough)
	if err := <-refused; !errors.Is(err, enough) {
		t.Errorf("it gave up with %v", err)
	}
	one()
	unlock := <-got
	<-second // it knows that another run was between
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if err := (<-joined)(); err != nil {
		t.Error(err)
	}
}

// TestLockTogetherAfterTheDead: neither who held the lock nor who waited for it and was
// killed keeps anybody from it.
func TestLockTogetherAfterTheDead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	holder, waiter := actor.Play(t, "holder", dir), actor.Play(t, "waiter", dir)
	waiter.Kill()
	holder.Kill()
	together(t, state.NewLocks(dir), "one")()
}

// TestLockTogetherIsGivenUp when its context ends, whatever holds it up.
func TestLockTogetherIsGivenUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l := state.NewLocks(dir)
	actor.Play(t, "holder", dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("enough")
	results := make(chan error, 2)
	for _, run := range []string{"one", "two"} { // the second waits for the first
		go func() {
			_, err := l.LockTogether(ctx, state.LockOptions{Holder: state.LockHolder{RunID: run}, OnWait: func(state.LockHolder) { cancel(enough) }})
			results <- err
		}()
	}
	for range 2 {
		if err := <-results; !errors.Is(err, enough) {
			t.Errorf("it gave up with %v", err)
		}
	}
	if _, err := state.NewLocks("").LockTogether(t.Context(), state.LockOptions{}); err == nil {
		t.Error("there is a lock without a state directory")
	}
}

// TestTurns: a waiter for shared runs lets earlier runs join, and after it gave up all runs.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		l, other := state.NewLocks(dir), state.NewLocks(dir)
		join := func(turn int) (unlock func() error) {
			t.Helper()
			unlock, err := l.LockTogether(t.Context(), state.LockOptions{Seq: turn, Holder: state.LockHolder{RunID: fmt.Sprint(turn)}})
			if err != nil {
				t.Fatal(err)
			}
			return unlock
		}
		second := join(2)
		ctx, giveUp := context.WithCancel(t.Context())
		waits, gaveUp := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := other.Lock(ctx, state.LockOptions{Wait: true, OnWait: func(state.LockHolder) { close(waits) }})
			gaveUp <- err
		}()
		<-waits
		first := join(1)
		joined := make(chan func() error, 1)
		go func() {
			unlock, err := l.LockTogether(t.Context(), state.LockOptions{Seq: 3, Holder: state.LockHolder{RunID: "3"}})
			if err != nil {
				t.Error(err)
			}
			joined <- unlock
		}()
		synctest.Wait()
		giveUp()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("it gave up with %v", err)
		}
		third := <-joined
		if err := errors.Join(first(), second(), third()); err != nil {
			t.Error(err)
		}
	})
}
