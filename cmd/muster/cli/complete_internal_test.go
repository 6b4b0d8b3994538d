package cli

import (
	"slices"
	"testing"

	"github.com/musterfleet/muster/model"
)

// FuzzCompletable: nothing that means something to a shell is completed, whatever a server has.
func FuzzCompletable(f *testing.F) {
	for _, name := range []string{"web01", "group.web.motd", "$(reboot)", "`reboot`", "a b", "a\nb", "a\x1b[2J", "*", "~root", "--yes", "", ".", "a;b", "é"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, got := range completable([]string{name, name}) {
			if got != name || got[0] == '-' {
				t.Errorf("%q is completed to %q", name, got)
			}
			for _, r := range got {
				if r != '.' && !model.IsToken(string(r)) {
					t.Errorf("%q is completed with %q", name, r)
				}
			}
		}
	})
}

// TestCompletable: names and keys are sorted, each once.
func TestCompletable(t *testing.T) {
	t.Parallel()
	got := completable([]string{"web02", "group.web.motd", "web01", "$(reboot)", "web02", "-rf"})
	if want := []string{"group.web.motd", "web01", "web02"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
