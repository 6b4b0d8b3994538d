package scaffold_test

import (
	"os"
	"slices"
	"testing"

	"github.com/musterfleet/muster/resources/scaffold"
)

// TestMain makes this binary the process that renders, which muster starts itself for.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, scaffold.RenderCommand) {
		scaffold.RenderMain(os.Stdin, os.Stdout)
		os.Exit(0)
	}
	os.Exit(m.Run())
}
