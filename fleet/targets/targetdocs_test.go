package targets_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/testing/markdown"
)

// TestDocumentedTargets: every example of the documentation compiles, and every state is
// documented.
func TestDocumentedTargets(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "fleet", "targets.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := markdown.Section(string(page), "## Targets")
	code, examples := regexp.MustCompile("`([^`]+)`"), 0
	for row := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		if len(cells) != 3 {
			continue
		}
		for _, found := range code.FindAllStringSubmatch(cells[2], -1) {
			examples++
			if _, err := targets.Compile(found[1]); err != nil {
				t.Error(err)
			}
		}
	}
	if examples < 14 {
		t.Errorf("found %d examples in %q", examples, section)
	}
	for _, word := range []fleet.Status{
		fleet.StatusUnreadable, fleet.StatusStopped, fleet.StatusUnreachable, fleet.StatusFailed, fleet.StatusRejected, fleet.StatusPending, fleet.StatusNoManifest, fleet.StatusOK,
	} {
		if !strings.Contains(section, "`"+string(word)+"`") {
			t.Errorf("state %s is not documented", word)
		}
	}
}
