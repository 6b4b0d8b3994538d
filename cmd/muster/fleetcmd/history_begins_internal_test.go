package fleetcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

// TestWhereReportsBegin checks the remark about reports that the stream no longer has.
func TestWhereReportsBegin(t *testing.T) {
	t.Parallel()
	oldest := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		bounds model.ReportBounds
		from   time.Time
		says   bool
	}{
		"nothing is gone":            {model.ReportBounds{Oldest: oldest}, time.Time{}, false},
		"older ones are gone":        {model.ReportBounds{Oldest: oldest, Dropped: true}, time.Time{}, true},
		"and before what is asked":   {model.ReportBounds{Oldest: oldest, Dropped: true}, oldest.Add(-time.Hour), true},
		"but nothing that was asked": {model.ReportBounds{Oldest: oldest, Dropped: true}, oldest, false},
		"all are gone":               {model.ReportBounds{Dropped: true}, time.Time{}, false},
	} {
		lines := begins(c.bounds, c.from)
		if (len(lines) == 1) != c.says || c.says && !strings.Contains(lines[0], "begins at 2026-01-31") {
			t.Errorf("%s: %q", name, lines)
		}
	}
}
