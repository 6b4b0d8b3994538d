package engine

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/musterfleet/muster/resources/resource"
)

// look is what is known of a resource's state, and as of when.
type look struct {
	spec     resource.Spec
	provider resource.Provider
	state    resource.State
	// asked is the state with what the guards said of it, nil where none were asked.
	asked resource.State
	err   error
	// at is the number of changes that had been made when the look was taken.
	at int
	// taken says that there was a look at all.
	taken bool
}

// eras remembers when each domain was last changed, counted in changes.
type eras struct {
	now  int
	last [8]int
}

// change makes the states of domains old.
func (e *eras) change(domains resource.Domain) {
	e.now++
	for bit := range e.last {
		if domains.Overlaps(1 << bit) {
			e.last[bit] = e.now
		}
	}
}

// fresh says that nothing has changed in domains since a look.
func (e *eras) fresh(l *look, domains resource.Domain) bool {
	if !l.taken {
		return false
	}
	for bit := range e.last {
		if domains.Overlaps(1<<bit) && e.last[bit] > l.at {
			return false
		}
	}

	return true
}

// group is the resources of one type and provider, which are asked together.
type group struct {
	typ      *resource.Type
	provider resource.Provider
	nodes    []*node
}

// lookAll takes the shared look: every resource that can be looked at before
// its turn.
func (r *run) lookAll(ctx context.Context, all []*node) {
	var nodes []*node
	for _, n := range all {
		if r.isLookedAt(n) {
			r.looks[n.at].spec = n.res.Spec
			nodes = append(nodes, n)
		}
	}
	r.lookAt(ctx, nodes)
}

// isLookedAt says that a resource can be looked at before its turn. What includes
// a manifest is judged by what came of that.
func (r *run) isLookedAt(n *node) bool {
	return n.res.Excluded == "" && n.res.Late == nil && n.res.Type.Include == nil && !r.ignoresDrift(n) && !r.scope(n).HealthCheckOnly
}

// lookAt asks for the states of nodes, grouped. What must be prepared is
// prepared before, or after a look that says that it is out of date.
func (r *run) lookAt(ctx context.Context, nodes []*node) {
	for _, g := range r.groups(nodes) {
		if g.typ.Stale == nil && !r.prepared(ctx, g) {
			continue
		}
		r.lookAtGroup(ctx, g)
		if r.isStale(g) && r.prepared(ctx, g) {
			r.lookAtGroup(ctx, g)
		}
	}
}

// isStale says that a state of a group is out of date.
func (r *run) isStale(g *group) bool {
	if g.typ.Stale == nil {
		return false
	}
	stale := false
	for _, n := range g.nodes {
		l := &r.looks[n.at]
		if l.err == nil && !r.isNoop(n) {
			l.err = protect(func() error { stale = stale || g.typ.Stale(l.state); return nil })
		}
	}

	return stale
}

// lookAtGroup asks one question for all of a group where the type can, else one each.
func (r *run) lookAtGroup(ctx context.Context, g *group) {
	var states []resource.State
	var errs []error
	err := protect(func() error {
		if g.typ.StatusAll == nil {
			states, errs = r.statusEach(ctx, g)
		} else {
			states, errs = g.typ.StatusAll(ctx, r.env(nil), g.provider, r.specs(g))
		}
		return nil
	})
	if err == nil && (len(states) != len(g.nodes) || len(errs) != len(g.nodes)) {
		err = fmt.Errorf("%s gave %d states for %d resources", g.typ.Name, len(states), len(g.nodes))
	}
	if err != nil {
		errs = slices.Repeat([]error{err}, len(g.nodes))
	}
	r.settleLooks(g, states, errs)
}

// groups sorts nodes by type and provider, choosing the provider of those that
// have none yet; a node without a suitable one has that as its look.
func (r *run) groups(nodes []*node) []*group {
	type key struct {
		typ      *resource.Type
		provider string
	}
	var out []*group
	byKey := map[key]*group{}
	for _, n := range nodes {
		l := &r.looks[n.at]
		if l.provider == nil {
			err := protect(func() (err error) {
				l.provider, err = n.res.Type.Select(r.opts.Env.Facts, l.spec)
				return err
			})
			if err != nil {
				l.provider, l.err, l.at, l.taken = nil, err, r.eras.now, true
				continue
			}
		}
		k := key{n.res.Type, l.provider.Name()}
		g, ok := byKey[k]
		if !ok {
			g = &group{typ: n.res.Type, provider: l.provider}
			byKey[k] = g
			out = append(out, g)
		}
		g.nodes = append(g.nodes, n)
	}

	return out
}

func (r *run) specs(g *group) []resource.Spec {
	specs := make([]resource.Spec, len(g.nodes))
	for i, n := range g.nodes {
		specs[i] = r.looks[n.at].spec
	}

	return specs
}

// prepared does what a type needs for a look; it is a change, so never in noop.
// When that fails the look of the whole group is its error.
func (r *run) prepared(ctx context.Context, g *group) bool {
	changing := &group{typ: g.typ, provider: g.provider}
	for _, n := range g.nodes {
		if !r.isNoop(n) {
			changing.nodes = append(changing.nodes, n)
		}
	}
	if g.typ.Prepare == nil || len(changing.nodes) == 0 {
		return true
	}
	err := protect(func() error { return g.typ.Prepare(ctx, r.env(nil), g.provider, r.specs(changing)) })
	if err != nil {
		r.settleLooks(g, nil, slices.Repeat([]error{err}, len(g.nodes)))
	}

	return err == nil
}

// settleLooks notes what came of a look; a node without an error has a state.
func (r *run) settleLooks(g *group, states []resource.State, errs []error) {
	for i, n := range g.nodes {
		l := &r.looks[n.at]
		l.state, l.err, l.at, l.taken = nil, errs[i], r.eras.now, true
		if l.err == nil {
			l.state = states[i]
		}
	}
}

// chunk is how many looks one worker takes at a time: enough that handing them
// out costs nothing, few enough that the workers end together.
const chunk = 32

// statusEach looks at the nodes of a group one by one, on all cores.
func (r *run) statusEach(ctx context.Context, g *group) ([]resource.State, []error) {
	states, errs := make([]resource.State, len(g.nodes)), make([]error, len(g.nodes))
	env := r.env(nil)
	parallel((len(g.nodes)+chunk-1)/chunk, runtime.GOMAXPROCS(0), func(at int) {
		for i := at * chunk; i < min((at+1)*chunk, len(g.nodes)); i++ {
			n, own := g.nodes[i], env
			own.Scope, own.Children = r.scope(n), r.children[n.ref]
			errs[i] = protect(func() (err error) {
				states[i], err = g.typ.Status(ctx, own, g.provider, r.looks[n.at].spec)
				return err
			})
		}
	})

	return states, errs
}

// parallel calls f with every number below count, for at most limit of them at the
// same time, and returns when all calls have.
func parallel(count, limit int, f func(i int)) {
	slots := make(chan struct{}, limit)
	var all sync.WaitGroup
	for i := range count {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	all.Wait()
}

// panicError is a panic of a type: it fails the resource and nothing else.
type panicError struct {
	Value any
	Stack []byte
}

// Error says what was panicked with.
func (p *panicError) Error() string { return fmt.Sprintf("panic in the resource type: %v", p.Value) }

// protect turns a panic into an error.
func protect(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{Value: v, Stack: debug.Stack()}
		}
	}()

	return f()
}
