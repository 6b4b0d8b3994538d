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
	actor.Main(m, map[string]func() error{"holder": playHolder})
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
