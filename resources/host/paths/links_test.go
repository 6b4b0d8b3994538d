package paths_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/resources/host/paths"
)

// TestNamesOfLinks: the owner of a directory makes a path with excessively many link names; it is refused
// like a loop.
func TestNamesOfLinks(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/x", 0o755), os.Mkdir(dir+"/l40", 0o755)); err != nil {
		t.Fatal(err)
	}
	for i := range 39 {
		if err := os.Symlink(fmt.Sprintf("%sl%d", strings.Repeat("x/../", min(800, 20*(39-i))), i+2), fmt.Sprintf("%s/l%d", dir, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := paths.OpenDir(dir + "/l1"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a way of 62,000 names: %v", err)
	}
	var r paths.Resolver
	if _, err := r.Find(dir+"/l1", true); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to it: %v", err)
	}
	leads(t, dir+"/l39", dir+"/l40")
}
