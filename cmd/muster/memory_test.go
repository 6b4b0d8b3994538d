package main

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/resources"
)

// TestParsedCommandsAreFreed: an agent runs for months, and the commands of muster take 0.6 MB.
func TestParsedCommandsAreFreed(t *testing.T) {
	env := cli.NewEnv(resources.All(), strings.NewReader(""), io.Discard, io.Discard, cli.NewInterrupt())
	app := commands(env)
	if _, err := parse(app, []string{"agent", "run", "--config", "agent.yaml"}); err != nil {
		t.Fatal(err)
	}
	parsed := weak.Make(app)
	runtime.GC()
	if parsed.Value() != nil {
		t.Error("the environment keeps all commands in memory")
	}
	runtime.KeepAlive(env)
}
