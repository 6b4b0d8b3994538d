package plan

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
)

// History is the transactions of each resource in the earlier commands of a session, by name and by
// alias, oldest first.
type History map[model.Ref][]*model.Transaction

// HistoryForPartial returns the history for the run of a part. It assumes that the rest of the
// graph does not change. failed reports whether a resource of the rest is not in its desired state.
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

// Knows reports whether an earlier command ran a resource.
func (h History) Knows(ref model.Ref) bool { return len(h[ref]) > 0 }

// failed reports whether the last run of a resource failed. In noop, predictions count too.
func (h History) failed(ref model.Ref, noop bool) bool {
	for _, last := range slices.Backward(h[ref]) {
		if !last.Noop || noop {
			return last.Failed || len(last.UnmetRequirements) > 0
		}
	}

	return false
}

// refreshes reports whether dep changed after it last refreshed subscriber. In noop, predictions
// count too.
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
