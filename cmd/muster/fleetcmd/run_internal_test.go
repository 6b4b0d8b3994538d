package fleetcmd

import (
	"fmt"
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
		if got := strings.Join(append([]string{runHeadline(c.answer)}, lines(c.answer)...), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestShortAnswersFillNoMemory: an answer that leaves out what nodes always write is invalid where it would be
// much longer with that; one of many runs, as nodes send it, is not.
func TestShortAnswersFillNoMemory(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(",{}", 340_000)
	for _, text := range []string{`{"runs":[{}` + many + `]}`, `{"state":{"changes":[{}` + many + `]}}`} {
		if out, err := decodeResponse([]byte(text)); err == nil || len(out.Runs) > 0 || out.State != nil {
			t.Errorf("%.30s: %v", text, err)
		}
	}
	var runs []string
	for i := range 500 {
		runs = append(runs, fmt.Sprintf(`{"manifest":"group.all.m%d"}`, i))
	}
	if out, err := decodeResponse([]byte(`{"runs":[` + strings.Join(runs, ",") + `]}`)); err != nil || len(out.Runs) != 500 {
		t.Errorf("%d runs, %v", len(out.Runs), err)
	}
}
