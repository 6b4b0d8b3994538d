package resources_test

import (
	"os"
	"slices"
	"testing"

	"github.com/musterfleet/muster/resources/scaffold/choria/render"
)

// TestMain makes this binary the process that renders, which muster starts itself for.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, render.Command) {
		render.Main(os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}
