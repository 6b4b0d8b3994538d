package ask_test

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/ask"

	"github.com/musterfleet/muster/model"
)

const own, group = "node.web01.pause", "group.web.pause"

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func begin() ask.PauseChange {
	return ask.PauseChange{ControlKey: own, Pause: &model.Pause{At: at, Until: at.Add(time.Hour)}}
}

// TestInEffect: a pause is in effect if it or a later-ending pause pauses the node. Its removal is in effect if its key
// does not pause the node.
func TestInEffect(t *testing.T) {
	t.Parallel()
	endless := ask.PauseChange{ControlKey: own, Pause: &model.Pause{At: at}}
	end := ask.PauseChange{ControlKey: own}
	const open = "written, not confirmed yet"
	for name, c := range map[string]struct {
		change ask.PauseChange
		paused *model.Paused
		want   string
	}{
		"not paused":                  {begin(), nil, open},
		"paused by it":                {begin(), &model.Paused{From: own, At: at}, "paused"},
		"paused by an earlier one":    {begin(), &model.Paused{From: own, At: at.Add(-time.Minute)}, open},
		"by another that ends later":  {begin(), &model.Paused{From: group, Until: at.Add(2 * time.Hour)}, "paused, also by " + group},
		"by another that ends sooner": {begin(), &model.Paused{From: group, Until: at.Add(time.Minute)}, open},
		"by another without end":      {endless, &model.Paused{From: group}, "paused, also by " + group},
		"without end, by one with":    {endless, &model.Paused{From: group, Until: at.Add(time.Minute)}, open},
		"resumed":                     {end, nil, "resumed"},
		"still paused":                {end, &model.Paused{From: own}, open},
		"resumed, paused by a group":  {end, &model.Paused{From: group, By: "ann"}, "still paused by " + group},
	} {
		got := confirm(c.change, model.Node{NodeState: model.NodeState{Paused: c.paused}}, true, false)
		if got.Text != c.want || (got.State == ask.StateDone) != (c.want != open) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestInEffectByKey: an agent that states all pauses confirms a change by its key and revision only.
func TestInEffectByKey(t *testing.T) {
	t.Parallel()
	begun, end := begin(), ask.PauseChange{ControlKey: own}
	begun.Revision = 7
	unnumbered := begin()
	const open = "written, not confirmed yet"
	byGroup := &model.Paused{From: group}
	for name, c := range map[string]struct {
		change ask.PauseChange
		paused *model.Paused
		by     map[string]uint64
		want   string
	}{
		"paused by another only":        {begun, byGroup, map[string]uint64{group: 9}, open},
		"by another, revision unknown":  {unnumbered, byGroup, map[string]uint64{group: 9}, open},
		"by an earlier revision":        {begun, byGroup, map[string]uint64{group: 9, own: 6}, open},
		"by both":                       {begun, byGroup, map[string]uint64{group: 9, own: 7}, "paused, also by " + group},
		"by both, revision unknown":     {unnumbered, byGroup, map[string]uint64{group: 9, own: 7}, "paused, also by " + group},
		"by a later revision":           {begun, &model.Paused{From: own}, map[string]uint64{own: 8}, "paused"},
		"not resumed, another is shown": {end, byGroup, map[string]uint64{group: 9, own: 7}, open},
		"resumed, still paused":         {end, byGroup, map[string]uint64{group: 9}, "still paused by " + group},
	} {
		got := confirm(c.change, model.Node{NodeState: model.NodeState{Paused: c.paused, PausedBy: c.by}}, true, false)
		if got.Text != c.want || (got.State == ask.StateDone) != (c.want != open) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestWhatIsNotInEffect: a node is pending unless it is away or rejects the change. A rejection from before the change
// does not count.
func TestWhatIsNotInEffect(t *testing.T) {
	t.Parallel()
	rejects := func(message string, by map[string]string) model.Node {
		return model.Node{NodeState: model.NodeState{Message: message, RejectedControl: by}}
	}
	const later = "; takes effect when it is back"
	type confirmed struct {
		state ask.State
		text  string
	}
	pending, refused := confirmed{ask.StatePending, "written, not confirmed yet"}, confirmed{ask.StateFailed, "refused: not signed"}
	away := func(text string) confirmed {
		return confirmed{ask.StateUnreachable, "written, not confirmed: " + text}
	}
	for name, c := range map[string]struct {
		node             model.Node
		unknown, earlier bool
		want             confirmed
	}{
		"says nothing":              {want: pending},
		"never seen":                {unknown: true, want: away("unreachable" + later)},
		"silent":                    {node: model.Node{Silent: true}, want: away("unreachable" + later)},
		"stopped":                   {node: model.Node{NodeState: model.NodeState{Event: model.NodeStopped}}, want: away("stopped" + later)},
		"unreadable":                {node: model.Node{Unreadable: "no", Silent: true}, want: away("its state cannot be read")},
		"rejects it":                {node: rejects("", map[string]string{own: "not signed"}), want: refused},
		"rejects it otherwise":      {node: rejects("", map[string]string{own: "expired"}), want: confirmed{ask.StateFailed, "refused: expired"}},
		"perhaps the one before":    {node: rejects("", map[string]string{own: "not signed"}), earlier: true, want: pending},
		"rejects another":           {node: rejects("", map[string]string{group: "not signed"}), want: pending},
		"an older agent":            {node: rejects("rejected: "+own+": not signed", nil), want: refused},
		"an older agent, another":   {node: rejects("rejected: node.web01.labels: not valid", nil), want: pending},
		"the message is for people": {node: rejects("rejected: "+own+": not signed", map[string]string{group: "not signed"}), want: pending},
	} {
		if got := confirm(begin(), c.node, !c.unknown, c.earlier); (confirmed{got.State, got.Text}) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// confirm returns a node's confirmation of a change. With earlier, the node had the same state before the change.
func confirm(change ask.Change, n model.Node, known, earlier bool) ask.Confirmation {
	var before model.Node
	if earlier {
		before = n
	}
	c := ask.NewConfirmation(change, before)
	ask.Update([]*ask.Confirmation{&c}, time.Now(), func(string) (model.Node, bool) { return n, known }, nil)

	return c
}
