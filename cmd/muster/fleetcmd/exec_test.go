package fleetcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// TestGroupEqual checks that equal answers of different nodes form one group.
func TestGroupEqual(t *testing.T) {
	t.Parallel()
	answer := func(node, stdout, stderr string, failed bool) model.EnsureResponse {
		return model.EnsureResponse{Node: node, Phase: model.EnsureDone, State: &model.Transaction{
			Type: "exec", Name: "x", Changed: true, Failed: failed, Duration: time.Duration(len(node)), Outputs: map[string]any{"stdout": stdout, "stderr": stderr},
		}}
	}
	var got []string
	for _, group := range GroupEqual(&ask.Ensured{Answers: []model.EnsureResponse{
		answer("a", "1", "", false), answer("b", "2", "", false), answer("cc", "2", "", false), answer("d", "2", "oops", false),
		answer("e", "2", "", true), answer("f", "2", "", false), {Node: "g", Phase: model.EnsureFailed, Error: "no"}, {Node: "h", Phase: model.EnsureFailed, Error: "no"},
	}}, streams) {
		got = append(got, strings.Join(group.Nodes, "+"))
	}
	if want := "b+cc+f g+h a d e"; strings.Join(got, " ") != want {
		t.Errorf("together are %v, want %s", got, want)
	}
}
