package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// TestRunsThatAreNotKept: runs older than the retained ones leave nothing behind.
func TestRunsThatAreNotKept(t *testing.T) {
	t.Parallel()
	l := view.New(view.Options{Keep: time.Hour, Events: 100, Runs: 100})
	add := func(seq uint64, node, run, kind, protocol string) {
		r := model.Report{Node: node, RunID: run, ID: ksuid.New().String(), Kind: kind, Type: protocol, Outcome: model.OutcomeFailed, Data: []byte(`{}`)}
		l.Add(model.StoredReports{Sequence: seq, Stored: time.Now(), Reports: []model.Report{r}})
	}
	for i := range uint64(1000) {
		node, run := fmt.Sprintf("web%d", i), fmt.Sprintf("r%d", i)
		add(10_000-10*i, node, run, model.KindTransaction, model.ProtocolTransaction)
		add(10_001-10*i, node, run, model.KindRun, model.ProtocolRun)
	}
	if kept, found := len(l.Runs(view.EventQuery{Limit: 1000})), l.FoundRuns(); kept != 100 || found != kept {
		t.Errorf("%d runs are kept, %d are found by their ids", kept, found)
	}
}

// TestRequestsThatAreNotKept: the past is read the newest first, so what comes last may be older than all that there is
// room for.
func TestRequestsThatAreNotKept(t *testing.T) {
	t.Parallel()
	const kept = 1000
	l := view.New(view.Options{Keep: time.Hour, Events: 100, Runs: 100})
	for i := range uint64(kept + 10) {
		r := model.Report{Node: "web1", ID: ksuid.New().String(), CorrelationID: fmt.Sprint("id", i), Kind: model.KindEnsure, Type: model.ProtocolEnsureResponse, Outcome: model.OutcomeChanged, Data: []byte(`{}`)}
		l.Add(model.StoredReports{Sequence: 10_000 - i, Stored: time.Now(), Reports: []model.Report{r}})
	}
	if all := l.Requests(); len(all) != kept {
		t.Errorf("%d requests are kept", len(all))
	}
}
