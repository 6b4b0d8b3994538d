package command_test

import (
	"context"
	"os"
	"testing"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/testing/actor"
)

func TestMain(m *testing.M) {
	actor.Main(m, map[string]func() error{"runner": playRunner})
}

// playRunner runs a command without end, tied to this process.
func playRunner() error {
	ready := func(string, bool) { actor.Ready() }
	_, err := command.New(nil).Run(context.Background(), command.Command{Argv: os.Args[1:], Tied: true, OnLine: ready})

	return err
}
