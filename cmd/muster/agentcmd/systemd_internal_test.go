package agentcmd

import (
	"errors"
	"testing"
	"time"

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

func TestAfterChange(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	var c model.Connected
	refused := errors.New("refused")
	steps := []struct {
		connected bool
		server    string
		err       error
		want      model.Connected
	}{
		{false, "a", refused, model.Connected{Server: "a", Error: "refused", ErrorAt: at(0)}},
		{true, "a", nil, model.Connected{Connected: true, Server: "a", Since: at(1), Error: "refused", ErrorAt: at(0)}},
		{true, "a", refused, model.Connected{Connected: true, Server: "a", Since: at(1), Error: "refused", ErrorAt: at(2)}},
		{true, "b", nil, model.Connected{Connected: true, Server: "b", Since: at(3), Error: "refused", ErrorAt: at(2)}},
		{false, "b", nil, model.Connected{Server: "b", Since: at(4), Error: "refused", ErrorAt: at(2)}},
		{false, "b", nil, model.Connected{Server: "b", Since: at(4), Error: "refused", ErrorAt: at(2)}},
	}
	for i, s := range steps {
		if c = afterChange(c, s.connected, s.server, s.err, at(i)); c != s.want {
			t.Errorf("step %d: %+v, want %+v", i, c, s.want)
		}
	}
}
