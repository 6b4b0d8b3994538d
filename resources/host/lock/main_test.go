package lock_test

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/musterfleet/muster/resources/host/lock"
	"github.com/musterfleet/muster/testing/actor"
)

func TestMain(m *testing.M) {
	actor.Main(m, map[string]func() error{"holder": playHolder, "waiter": playWaiter})
}

// playHolder takes the run lock and keeps it until its input ends.
func playHolder() error {
	unlock, err := lock.New(os.Args[1]).Lock(context.Background(), lock.Options{Holder: lock.Holder{Command: "muster apply", RunID: "run1"}})
	if err != nil {
		return err
	}
	actor.Ready()
	_, _ = io.Copy(io.Discard, os.Stdin)

	return unlock()
}

// playWaiter waits for the run lock.
func playWaiter() error {
	_, err := lock.New(os.Args[1]).Lock(context.Background(), lock.Options{Wait: true, OnWait: func(lock.Holder) { actor.Ready() }})

	return err
}
