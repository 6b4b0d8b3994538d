package engine

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// anyNeed is a need that whatever comes before may fulfil.
const anyNeed = "*"

// unjudged handles, in noop, a resource that fails because something before it
// is not there yet; false means that the error stands. When a resource will
// bring just what is needed, and the type could plan all the same, that plan
// is what would be done. Else nothing is known until that one is applied.
func (r *run) unjudged(n *node, err error, plan resource.Plan, refresh bool, t *model.Transaction) bool {
	needs := resource.MissingNeeds(err)
	if len(needs) == 0 {
		return false
	}
	p, exact := r.bringer(n, needs)
	switch {
	case p == nil:
		return false
	case exact && !plan.Empty():
		r.would(n, t, plan, refresh)
	default:
		t.Skipped, t.Noop = true, true
		t.SkipReason = "unknown until " + p.ref.String() + " is applied"
		t.NoopMessage = t.SkipReason
		r.results[n.at].would = true
	}

	return true
}

// bringer finds the resource before n that is going to change and may bring
// what n needs: one that provides just that, or else the nearest that n was
// declared to depend on or that runs what anyone may have put into it.
func (r *run) bringer(n *node, needs []string) (p *node, exact bool) {
	var near *node
	for i := n.at - 1; i >= 0; i-- {
		p := r.graph.nodes[i]
		if !r.results[i].would {
			continue
		}
		if slices.ContainsFunc(needs, func(need string) bool { return slices.Contains(p.provides, need) }) {
			return p, true
		}
		if near == nil && (slices.Contains(needs, anyNeed) || mayBring(p, n)) {
			near = p
		}
	}

	return near, false
}

func mayBring(p, n *node) bool {
	return p.res.Type.Writes.Overlaps(resource.Accounts) ||
		slices.Contains(n.requires, p) || slices.Contains(n.subscribes, p)
}
