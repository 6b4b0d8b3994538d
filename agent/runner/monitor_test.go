package runner

import (
	"slices"
	"testing"

	"github.com/musterfleet/muster/model"
)

// A partial run takes no refreshes of other resources.
func TestTakeRefresh(t *testing.T) {
	m, a, b := &Checks{manifests: map[string]*healthChecks{}}, model.Ref{Type: "exec", Name: "a"}, model.Ref{Type: "exec", Name: "b"}
	m.of("m").refresh = []model.Ref{a, b}
	for _, c := range []struct{ part, want []model.Ref }{{[]model.Ref{b}, []model.Ref{b}}, {[]model.Ref{b}, nil}, {nil, []model.Ref{a}}, {nil, nil}} {
		if got := m.takeRefresh("m", c.part); !slices.Equal(got, c.want) {
			t.Errorf("of %v it is %v, want %v", c.part, got, c.want)
		}
	}
}
