//go:build system

package facts_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/facts"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemReadFileOfStranger reads a fact file that belongs to another user.
func TestSystemReadFileOfStranger(t *testing.T) {
	hosttest.NeedRoot(t)
	path := hosttest.Foreign(t) + "/facts.yaml"
	write(t, path, "role: db\n")
	hosttest.Give(t, path)
	if found, err := facts.ReadFile(path); !errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), "chown root "+path) || found != nil {
		t.Errorf("it gives %v, %v", found, err)
	}
}
