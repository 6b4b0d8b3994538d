package paths_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/paths"
)

// TestLinks: links are followed as the kernel does, but no further than a walk.
func TestLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "real/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	made := map[string]string{
		"to": "real", "up": "to/deep/../../real", "abs": dir + "/to", "gone": "missing/../real", "loop": "loop", "real/in": "../to/deep",
		"names": strings.Repeat("real/../", 500) + "real", "0": "real",
	}
	for i := range 40 {
		made[fmt.Sprint(i+1)] = fmt.Sprint(i)
	}
	for link, to := range made {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	links := paths.Links{}
	for path, want := range map[string][2]string{
		"real/f": {"real/f", "real/f"}, "to/f": {"real/f", "real/f"}, "up/f": {"real/f", "real/f"}, "abs/deep/f": {"real/deep/f", "real/deep/f"},
		"up": {"up", "real"}, "to/in": {"real/in", "real/deep"}, "to/in/new/f": {"real/deep/new/f", "real/deep/new/f"}, "missing/new": {"missing/new", "missing/new"},
		"39/f": {"real/f", "real/f"}, "40/f": {"40/f", "40/f"}, "names/f": {"names/f", "names/f"}, "loop/f": {"loop/f", "loop/f"}, "gone": {"gone", "real"},
	} {
		at, target := links.Resolve(filepath.Join(dir, path))
		if got := [2]string{strings.TrimPrefix(at, dir+"/"), strings.TrimPrefix(target, dir+"/")}; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}
