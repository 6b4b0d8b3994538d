package view

import (
	"fmt"
	"slices"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Request returns a request that nodes answered, with those that did not, and whether it is known.
//
// Nobody wrote down whom it was sent to. So its targets are evaluated as of now, and what is found counts only
// where it is as many nodes as the sender asked.
func (f *Fleet) Request(id string) (RequestDetail, bool) {
	f.mu.RLock()
	row, is := f.requests.byID[id]
	if !is {
		f.mu.RUnlock()
		return RequestDetail{}, false
	}
	out := RequestDetail{Progress: f.progress.get(), RequestRow: *row, Missing: []string{}}
	answered := f.answered(id)
	f.mu.RUnlock()
	switch {
	case out.Nodes == 0:
		out.Unknown = "the sender did not say how many nodes it asked, or the agents are of an earlier version"
	case out.Answers >= out.Nodes:
	case out.To == "" && out.On == "":
		out.Unknown = "the sender did not say which nodes it asked, or the target is long"
	case len(answered) < out.Answers:
		out.Unknown = "not all of its answers are kept any more"
	default:
		out.Missing, out.Unknown = f.unanswered(out.RequestRow, answered)
	}

	return out, true
}

// answered returns the nodes of which an answer is kept. The lock is held.
func (f *Fleet) answered(id string) map[string]bool {
	out := map[string]bool{}
	f.events.newest(0, func(it *item[Event]) bool {
		if it.value.Kind == model.KindEnsure && it.value.CorrelationID == id {
			out[it.value.Node] = true
		}
		return true
	})

	return out
}

// unanswered returns the nodes that did not answer, or why nobody can tell.
func (f *Fleet) unanswered(r RequestRow, answered map[string]bool) (missing []string, unknown string) {
	missing = []string{}
	asked, err := f.askedNow(r)
	if err != nil {
		return missing, "its target cannot be evaluated: " + line(err.Error(), maxText)
	}
	for _, name := range asked {
		if !answered[name] {
			missing = append(missing, name)
		}
	}
	if want := r.Nodes - r.Answers; len(missing) != want {
		return []string{}, fmt.Sprintf("%d did not answer, but its target is other nodes by now", want)
	}

	return missing, ""
}

// askedNow returns the nodes that the targets of a request are now, sorted.
func (f *Fleet) askedNow(r RequestRow) ([]string, error) {
	var out []string
	if r.On != "" {
		found, err := f.Select(r.On)
		for _, n := range found.Nodes {
			out = append(out, n.Node)
		}
		return out, err
	}
	f.mu.RLock()
	all := f.nodes.all()
	f.mu.RUnlock()
	for _, t := range fleet.SplitTargets(r.To) {
		if t.Node != "" { // which needs not be known
			out = append(out, t.Node)
			continue
		}
		for _, n := range all {
			if t.Includes(n.NodeState) {
				out = append(out, n.Node.Node)
			}
		}
	}
	slices.Sort(out)

	return slices.Compact(out), nil
}
