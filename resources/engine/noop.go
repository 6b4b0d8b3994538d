package engine

import (
	"errors"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// anyNeed is a need that whatever comes before may fulfil.
const anyNeed = "*"

// unknownError is, in noop, that nobody knows what would be done to a resource
// before another one is applied.
type unknownError struct{ until *node }

// Error says what must be applied.
func (u unknownError) Error() string { return "unknown until " + u.until.ref.String() + " is applied" }

// unjudged handles, in noop, a resource of which nothing is known, or that
// fails because something before it is not there yet; false means that the
// error stands. When a resource will bring just what is needed, and the type
// could plan all the same, that plan is what would be done.
func (r *run) unjudged(n *node, err error, plan resource.Plan, refresh bool, t *model.Transaction) bool {
	var u unknownError
	if needs := resource.MissingNeeds(err); len(needs) > 0 {
		p, exact := r.bringer(n, needs)
		switch {
		case p == nil:
			return false
		case exact && !plan.Empty():
			r.would(n, t, plan, refresh)
			return true
		}
		u.until = r.results[p.at].pending
	} else if !errors.As(err, &u) {
		return false
	}
	t.Skipped, t.Noop = true, true
	t.SkipReason = u.Error()
	t.NoopMessage = t.SkipReason
	res := &r.results[n.at]
	res.would, res.unknown, res.pending = true, true, u.until

	return true
}

// pendingBefore gives the last of what would change before n, nil where n comes
// after nothing that would. What stands in between may be as it should be.
func (r *run) pendingBefore(n *node) *node {
	var last *node
	for _, dep := range n.before {
		if p := r.results[dep.at].pending; p != nil && (last == nil || p.at > last.at) {
			last = p
		}
	}

	return last
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
