package plan

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
)

// History is the transactions of each resource in the earlier commands of a
// session, by its name and by its alias, the oldest first. Nil is none.
type History map[model.Ref][]*model.Transaction

// Standing returns the history by which a run of a part takes the rest of its graph
// as it stands: nothing of that changes, and failed says what did not reach its state.
func HistoryForPartial(part *graph.Graph, failed func(model.Ref) bool) History {
	h := History{}
	for _, n := range part.Nodes() {
		for _, ref := range slices.Concat(n.RequiresElsewhere, n.SubscribesElsewhere) {
			if other := part.PartOf().Node(ref); other != nil && h[ref] == nil {
				h[ref] = []*model.Transaction{{Type: ref.Type, Name: ref.Name, Failed: failed(other.Ref)}}
			}
		}
	}

	return h
}

// Knows reports whether an earlier command had a resource.
func (h History) Knows(ref model.Ref) bool { return len(h[ref]) > 0 }

// failed reports whether a resource did not reach its state when last tried. In
// noop a try that was only planned counts too.
func (h History) failed(ref model.Ref, noop bool) bool {
	for _, last := range slices.Backward(h[ref]) {
		if !last.Noop || noop {
			return last.Failed || len(last.UnmetRequirements) > 0
		}
	}

	return false
}

// refreshes reports whether dep changed since it last refreshed subscriber. In noop a
// change that was only planned counts too.
func (h History) refreshes(dep, subscriber model.Ref, noop bool) bool {
	for _, change := range slices.Backward(h[dep]) {
		if change.Changed && (!change.Noop || noop) {
			return !slices.ContainsFunc(h[subscriber], func(t *model.Transaction) bool {
				return t.Refreshed && !t.Noop && !t.Failed && t.Timestamp.After(change.Timestamp)
			})
		}
	}

	return false
}
