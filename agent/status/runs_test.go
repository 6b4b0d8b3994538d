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
