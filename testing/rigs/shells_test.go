//go:build system

package rigs_test

import (
	"os/exec"
	"testing"
)

// TestShellsAreThere: go test tries completion in the shells that it finds. Where the system is tested, that is
// all of them.
func TestShellsAreThere(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if _, err := exec.LookPath(shell); err != nil {
			t.Errorf("completion is not tried in %s, install it: %v", shell, err)
		}
	}
}
