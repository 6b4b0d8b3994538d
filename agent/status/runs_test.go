package status_test

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
)

// TestWhatFailedIsShownFirst of many that were not run.
func TestWhatFailedIsShownFirst(t *testing.T) {
	const key = "group.all.many"
	r, found := status.NewRuns(), status.Deviations{}
	for i := range 60 {
		found.Note(&model.Transaction{Type: "file", Name: fmt.Sprintf("/%d", i), NotRun: true})
	}
	found.Note(&model.Transaction{Type: "file", Name: "/broken", Failed: true})
	r.Conclude(key, &model.Run{RunID: "run"}, found)
	out := model.AgentStatus{Manifests: []model.AssignedManifest{{Key: key}}}
	r.Describe(&out)
	last := out.Manifests[0].Last
	if n := len(last.Deviations); n != 50 || last.More != 11 || last.Deviations[n-1].Resource != "file#/broken" {
		t.Errorf("%d are listed, and %d more: %+v", n, last.More, last.Deviations)
	}
}

// TestLastRepair is shown also where the run of a whole manifest made it, as after a run that
// failed; of a run of a part that ended beside it, the later one is.
func TestLastRepair(t *testing.T) {
	const key = "node.n1.site"
	drifted := func(name string) *model.Transaction {
		return &model.Transaction{Type: "file", Name: name, Changed: true, Cause: model.CauseDrift}
	}
	r := status.NewRuns()
	shown := func() string {
		out := model.AgentStatus{Manifests: []model.AssignedManifest{{Key: key}}}
		r.Describe(&out)
		return out.Manifests[0].Last.Repair.Resource
	}
	whole := status.Deviations{}
	whole.Note(drifted("/whole"))
	r.Conclude(key, &model.Run{RunID: "first"}, whole)
	if got := shown(); got != "file#/whole" {
		t.Errorf("after the run of the whole, %s is shown", got)
	}
	r.Update(key, drifted("/part"))
	r.Conclude(key, &model.Run{RunID: "second"}, status.Deviations{})
	if got := shown(); got != "file#/part" {
		t.Errorf("after a run of a part and one without a repair, %s is shown", got)
	}
	whole = status.Deviations{}
	whole.Note(drifted("/whole"))
	r.Update(key, drifted("/later"))
	r.Conclude(key, &model.Run{RunID: "third"}, whole)
	if got := shown(); got != "file#/later" {
		t.Errorf("after a run of the whole, and a later repair beside it, %s is shown", got)
	}
}
