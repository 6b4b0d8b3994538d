package ask_test

import (
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// TestNodesThatWereNotAsked: an answer of a node that is not named does not count, although the node may see the request
// of a named one. In a group, an unknown node may be new and counts.
func TestNodesThatWereNotAsked(t *testing.T) {
	t.Parallel()
	answers := []model.EnsureResponse{response("evil", model.EnsureAcknowledged), response("a", model.EnsureDone), response("evil", model.EnsureDone)}
	a := &network{held: true, answers: map[string][]model.EnsureResponse{"node.a": answers[:2], "group.web": answers}}
	e := ask.Request{ID: "1", Network: a, Targets: []fleet.Target{{Node: "a"}}, Known: known("a"), Silence: never, OnAnswer: func(r model.EnsureResponse) {
		if r.Node != "a" {
			t.Errorf("answer of %s", r.Node)
		}
	}}
	got, err := e.Send(t.Context())
	if err != nil || !got.OK() || len(got.Answers) != 1 || len(got.NodeStates()) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	e.OnAnswer, e.Targets = nil, toWeb
	if got, err = e.Send(t.Context()); err != nil || len(got.Answers) != 2 {
		t.Errorf("of a group: %+v, %v", got, err)
	}
}
