package engine

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// unknownError is, in noop, that nobody knows what would be done to a resource
// before another one is applied.
type unknownError struct {
	until *node
	// late are the properties that are known then.
	late []string
}

// Error says what must be applied.
func (u unknownError) Error() string {
	words := "unknown until " + u.until.ref.String() + " is applied"
	switch len(u.late) {
	case 0:
		return words
	case 1:
		return words + ": `" + u.late[0] + "` is known after apply"
	default:
		return words + ": `" + strings.Join(u.late, "`, `") + "` are known after apply"
	}
}

// taken gives what must be applied before it is known what n takes of others,
// nil when that is known.
func (r *run) taken(n *node) *node {
	for _, need := range n.res.Taken {
		dep, here := r.graph.byRef[need.Ref]
		if here && r.results[dep.at].until != nil && r.follows(n, dep) {
			return r.results[dep.at].until
		}
	}

	return nil
}

// unjudged handles, in noop, a resource of which nothing is known, or that
// fails because something before it is not there yet; false means that the
// error stands. When a resource will bring just what is needed, and the type
// could plan all the same, that plan is what would be done.
func (r *run) unjudged(n *node, err error, plan resource.Plan, refresh bool, t *model.Transaction) bool {
	var u unknownError
	if needs := resource.MissingNeeds(err); needs != nil {
		p, exact := r.bringer(n, needs)
		switch {
		case p == nil:
			return false
		case exact && !plan.Empty():
			r.would(n, t, plan, refresh)
			return true
		}
		u.until = r.results[p.at].until
	} else if !errors.As(err, &u) {
		return false
	}
	t.Skipped, t.Noop = true, true
	t.SkipReason = u.Error()
	t.NoopMessage = t.SkipReason
	r.results[n.at].unknown = true
	r.expect(n, u.until)

	return true
}

// overtaken gives, in noop, what must be applied before what the machine shows of
// n can be believed, because a resource before n would change that; nil where
// there is nothing of the kind. empty says that nothing is due as it is now.
func (r *run) overtaken(n *node, empty bool) *node {
	instead, g := r.graph.provided, r.graph
	if empty {
		instead = g.removed
	}
	for _, what := range n.relations.Unless {
		if until := r.planned(instead[what], n); until != nil {
			return until
		}
	}
	if !empty {
		return nil
	}
	for _, what := range n.relations.Reads {
		if until := cmp.Or(r.planned(g.provided[what], n), r.planned(g.removed[what], n)); until != nil {
			return until
		}
	}

	return nil
}

// planned gives what must be applied before it is known what one of nodes does
// that had its turn before n and would do something; nil when none would.
func (r *run) planned(nodes []*node, n *node) *node {
	for _, p := range nodes {
		if r.results[p.at].would && r.follows(n, p) {
			return r.results[p.at].until
		}
	}

	return nil
}

// expect notes that n would change, which is known for sure once until is applied.
func (r *run) expect(n, until *node) {
	res := &r.results[n.at]
	res.would, res.until = true, until
	if !r.onlyReports(n) {
		res.pending = until
	}
}

// follows says that what dep would do counts for n: what no run changes serves
// only those that no run changes either.
func (r *run) follows(n, dep *node) bool {
	return r.isNoop(n) && (!r.onlyReports(dep) || r.onlyReports(n))
}

// pendingBefore gives the last of what would change before n, nil where n comes
// after nothing that would. What stands in between may be as it should be.
func (r *run) pendingBefore(n *node) *node {
	var last *node
	for _, dep := range n.before {
		p := r.results[dep.at].pending
		if until := r.results[dep.at].until; until != nil && r.follows(n, dep) {
			p = until
		}
		if p != nil && (last == nil || p.at > last.at) {
			last = p
		}
	}

	return last
}

// maker finds the resource that makes on its way what the error says is missing,
// and that can go first because it waits for nothing. A look tells what is
// missing, so the order of the document is left only where it would fail.
func (r *run) maker(err error) *node {
	for _, need := range resource.MissingNeeds(err) {
		for _, p := range r.graph.along[need] {
			if !r.results[p.at].begun && !r.onlyReports(p) && !slices.ContainsFunc(p.before, func(dep *node) bool { return !r.results[dep.at].done }) {
				return p
			}
		}
	}

	return nil
}

// bringer finds the resource that is going to change and may bring what n needs:
// one that provides just that, or else the nearest that n comes after or that
// runs what anyone may have put into it.
func (r *run) bringer(n *node, needs []string) (p *node, exact bool) {
	var near *node
	for i, p := range slices.Backward(r.graph.nodes) {
		if !r.results[i].would || !r.follows(n, p) {
			continue
		}
		if slices.ContainsFunc(needs, p.brings) {
			return p, true
		}
		if near == nil && mayBring(p, n) {
			near = p
		}
	}

	return near, false
}

func (n *node) brings(need string) bool {
	return slices.Contains(n.relations.Provides, need) || slices.Contains(n.relations.Along, need)
}

func mayBring(p, n *node) bool {
	return p.res.Type.Writes.Overlaps(resource.Accounts) || slices.Contains(n.before, p)
}
