package agent

import (
	"testing"

	"github.com/musterfleet/muster/model"
)

func TestStatusLine(t *testing.T) {
	of := func(states ...model.ManifestState) (out []model.AssignedManifest) {
		for _, s := range states {
			out = append(out, model.AssignedManifest{State: s})
		}
		return out
	}
	failed, late := model.ManifestState{Outcome: model.OutcomeFailed}, model.ManifestState{Late: "refused: x"}
	for want, s := range map[string]model.AgentStatus{
		"not connected, 0 manifests":                                       {},
		"connected, 3 manifests, 1 failed":                                 {NATS: model.Connected{Connected: true}, Manifests: of(failed, model.ManifestState{}, model.ManifestState{Outcome: model.OutcomeChanged})},
		"not connected, 2 manifests, 1 failed, 1 not up to date, 1 notice": {Manifests: of(failed, late), Notices: []string{"x"}},
	} {
		if got := statusLine(s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
