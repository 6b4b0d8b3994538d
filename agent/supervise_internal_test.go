package agent

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
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

// TestLogLevelOfTheSocket: only the four levels of the flag are levels.
func TestLogLevelOfTheSocket(t *testing.T) {
	t.Parallel()
	s := &Supervisor{level: new(slog.LevelVar), log: slog.New(slog.DiscardHandler)}
	routes := s.routes(nil)
	for name, want := range map[string]int{"debug": http.StatusOK, "error": http.StatusOK, "error+100": http.StatusBadRequest, "WARN": http.StatusBadRequest, "": http.StatusBadRequest} {
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, httptest.NewRequest(http.MethodPut, RouteLogLevel, strings.NewReader(`{"level":"`+name+`"}`)))
		if w.Code != want {
			t.Errorf("%q: %d, want %d", name, w.Code, want)
		}
	}
}
