package ask

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestAnErrorIsSaidOnce, by the node or by the run of a manifest.
func TestAnErrorIsSaidOnce(t *testing.T) {
	t.Parallel()
	failed := model.RequestedRun{Manifest: "group.web.motd", Revision: 3, RunID: "r1", Outcome: model.OutcomeFailed, Counts: model.Counts{Total: 2, Failed: 1}, Error: "file#/etc/motd: no space"}
	stable := model.RequestedRun{Manifest: "group.web.issue", Revision: 2, RunID: "r2", Outcome: model.OutcomeStable, Counts: model.Counts{Total: 1}}
	answer := model.EnsureResponse{Protocol: model.ProtocolRunResponse, Phase: model.EnsureDone, Runs: []model.RequestedRun{stable, failed}}
	notRun := answer
	notRun.Phase, notRun.Error, notRun.Runs = model.EnsureFailed, "the agent stops", []model.RequestedRun{{Manifest: "group.web.motd", Outcome: model.OutcomeNotRun, Error: "the agent stops"}}
	refused := model.EnsureResponse{Protocol: model.ProtocolRunResponse, Phase: model.EnsureFailed, Error: "not signed"}
	for name, c := range map[string]struct {
		answer model.EnsureResponse
		want   string
	}{
		"of a run":      {answer, "2 manifests, 1 failed|group.web.motd@3  failed: 2 resources, 1 failed: file#/etc/motd: no space"},
		"of both":       {notRun, "the agent stops|group.web.motd  notrun"},
		"of the node":   {refused, "not signed"},
		"of nobody":     {model.EnsureResponse{Protocol: model.ProtocolRunResponse, Phase: model.EnsureDone, Runs: []model.RequestedRun{stable}}, "1 manifest"},
		"of an expired": {model.EnsureResponse{Protocol: model.ProtocolRunResponse, Phase: model.EnsureExpired}, "expired"},
	} {
		if got := strings.Join(append([]string{RunHeadline(c.answer)}, RunLines(c.answer)...), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
