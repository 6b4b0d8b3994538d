package ask_test

import (
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// TestNodesThatWereNotAsked: a node that was not named has the question of one that was, and says that it does
// what was asked. It counts for nothing, and nobody waits for it. In a group it may be one that is not known yet.
func TestNodesThatWereNotAsked(t *testing.T) {
	t.Parallel()
	answers := []model.EnsureResponse{response("evil", model.EnsureAcknowledged), response("a", model.EnsureDone), response("evil", model.EnsureDone)}
	a := &asker{held: true, answers: map[fleet.Target][]model.EnsureResponse{{Node: "a"}: answers[:2], {Group: "web"}: answers}}
	e := ask.Ensurer{Asker: a, Nodes: known("a"), Silence: never, OnAnswer: func(r model.EnsureResponse) {
		if r.Node != "a" {
			t.Errorf("answer of %s", r.Node)
		}
	}}
	got, err := e.Ensure(t.Context(), []fleet.Target{{Node: "a"}}, model.EnsureRequest{ID: "1"})
	if err != nil || !got.OK() || len(got.Answers) != 1 || len(got.NodeStates()) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	e.OnAnswer = nil
	if got, err = e.Ensure(t.Context(), toWeb, model.EnsureRequest{ID: "1"}); err != nil || len(got.Answers) != 2 {
		t.Errorf("of a group: %+v, %v", got, err)
	}
}
