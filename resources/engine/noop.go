package engine

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// anyNeed is a need that whatever comes before may fulfil.
const anyNeed = "*"

// unknownUntil says, in noop, that a resource cannot be judged because something
// before it is not there yet; false means that the error stands.
func (r *run) unknownUntil(n *node, err error, t *model.Transaction) bool {
	need, missing := resource.MissingNeed(err)
	if !missing {
		return false
	}
	for i := n.at - 1; i >= 0; i-- {
		p := r.graph.nodes[i]
		if !r.results[i].would || !brings(p, n, need) {
			continue
		}
		t.Skipped, t.Noop = true, true
		t.SkipReason = "unknown until " + p.ref.String() + " is applied"
		t.NoopMessage = t.SkipReason
		r.results[n.at].would = true
		return true
	}

	return false
}

// brings says that p may bring what n needs: because it provides just that,
// because n was declared to depend on it, or because it runs what anyone may
// have put into it.
func brings(p, n *node, need string) bool {
	return need == anyNeed || slices.Contains(p.provides, need) || p.res.Type.Writes.Overlaps(resource.Accounts) ||
		slices.Contains(n.requires, p) || slices.Contains(n.subscribes, p)
}
