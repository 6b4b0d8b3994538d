package fleetcmd

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/targets"
)

// TestUndecidedNodesAreNamed: of many the first ten, with their number, and all of them at the level debug.
func TestUndecidedNodesAreNamed(t *testing.T) {
	t.Parallel()
	undecided := func(count int) (all []targets.Undecided) {
		for i := range count {
			all = append(all, targets.Undecided{Node: fmt.Sprintf("web%03d", i), Reason: "no facts"})
		}
		return all
	}
	logged := func(level slog.Level, all []targets.Undecided) string {
		var out strings.Builder
		warnUndecided(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})), all)
		return out.String()
	}
	if text := logged(slog.LevelDebug, undecided(10)); strings.Count(text, "\n") != 1 || !strings.Contains(text, "web000,") || !strings.Contains(text, ",web009 ") {
		t.Errorf("of ten: %s", text)
	}
	if text := logged(slog.LevelInfo, undecided(5000)); len(text) > 300 || !strings.Contains(text, "web000,") || !strings.Contains(text, ",web009 count=5000 ") {
		t.Errorf("of many: %s", text)
	}
	if text := logged(slog.LevelDebug, undecided(5000)); strings.Count(text, "\n") != 2 || !strings.Contains(text, ",web999,") {
		t.Errorf("of many in detail: %.300s", text)
	}
	err := UndecidedError(targets.Selection{Undecided: undecided(12)})
	if err == nil || !strings.HasSuffix(err.Error(), "web009 and 2 more (all of them: --log-level debug)") {
		t.Errorf("the error is %v", err)
	}
}
