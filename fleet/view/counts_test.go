package view_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

func TestTotals(t *testing.T) {
	t.Parallel()
	stored := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := view.New(view.Options{})
	message := func(seq uint64, id string, invalid error) model.StoredReports {
		return model.StoredReports{Sequence: seq, Stored: stored.Add(time.Duration(seq) * time.Second), Invalid: invalid, Reports: []model.Report{{
			Node: "web01", ID: id, Kind: model.KindRun, Outcome: model.OutcomeChanged, Type: model.ProtocolRun,
			Data: []byte(`{"protocol": "io.muster.v1.run", "run_id": "r", "node": "web01", "manifest": "group.web.motd", "counts": {"total": 2}, "retry": true, "drift": {"detected": 2, "repaired": 2}}`),
		}}}
	}
	f.SetEnd(5)
	f.Add(message(6, "a", nil))
	f.Add(message(7, "a", nil))                   // the same again
	f.Add(message(5, "b", errors.New("garbage"))) // of the past
	f.Add(message(8, "c", errors.New("garbage")))
	if all := f.Runs(view.EventQuery{}); len(all) != 1 || !all[0].Retry {
		t.Errorf("%+v", all)
	}
	f.SetEnd(10)
	want := view.Totals{
		Reports:    []view.ReportCount{{Kind: model.KindRun, Outcome: model.OutcomeChanged, Count: 2}},
		Unreadable: 1, Repaired: 4, Behind: 2, Newest: stored.Add(8 * time.Second),
	}
	if got := f.Totals(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}

	// The stream was created again.
	f.SetEnd(1)
	f.Add(message(2, "d", nil))
	if got := f.Totals(); got.Behind != 0 || got.Reports[0].Count != 3 {
		t.Errorf("%+v", got)
	}
	for i := range uint64(1000) {
		f.Add(model.StoredReports{Sequence: 10 + i, Reports: []model.Report{{Node: "web01", ID: string(rune('A' + i)), Kind: model.KindRun, Outcome: model.Outcome(string(rune('A' + i)))}}})
	}
	if got := f.Totals(); len(got.Reports) != 200 {
		t.Errorf("%d kinds and outcomes", len(got.Reports))
	}
}
