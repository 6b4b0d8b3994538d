package fleetcmd

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// TestShares: a batch counts once, with all outcomes, and only full shares are named.
func TestShares(t *testing.T) {
	t.Parallel()
	one := model.Report{Node: "web01", Kind: model.KindTransaction, Outcome: model.OutcomeFailed}
	var s view.Shares
	s.Add(model.StoredReports{Invalid: kvstore.ErrInvalidEvent})
	for range 2 {
		s.Add(model.StoredReports{Reports: []model.Report{one}})
	}
	s.Add(model.StoredReports{Reports: []model.Report{one, one}})
	for most, want := range map[int]string{
		0: "[]", 3: "[]",
		2: "[only the newest 2 reports of each are retained: web01 (transaction failed)]",
		1: "[only the newest 1 reports of each are retained: web01 (transaction failed), web01 (transaction)]",
	} {
		if got := fmt.Sprint(missingReports(&s, model.ReportBounds{PerSubject: most})); got != want {
			t.Errorf("at most %d: %s", most, got)
		}
	}
}
