package state_test

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/testing/actor"
)

func TestMain(m *testing.M) {
	actor.Main(m, map[string]func() error{"holder": playHolder, "waiter": playWaiter})
}

// playHolder takes the run lock and keeps it until its input ends.
func playHolder() error {
	unlock, err := state.NewLocks(os.Args[1]).Lock(context.Background(), state.LockOptions{Holder: state.LockHolder{Command: "muster apply", RunID: "run1"}})
	if err != nil {
		return err
	}
	actor.Ready()
	_, _ = io.Copy(io.Discard, os.Stdin)

	return unlock()
}

// playWaiter waits for the run lock.
func playWaiter() error {
	_, err := state.NewLocks(os.Args[1]).Lock(context.Background(), state.LockOptions{Wait: true, OnWait: func(state.LockHolder) { actor.Ready() }})

	return err
}
