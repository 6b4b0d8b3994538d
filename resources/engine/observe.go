package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// observer stores the observations of the nodes of a graph. An observation is valid until a change
// touches a domain that it describes. One goroutine uses it.
type observer struct {
	run  *access
	seen []observation
	generations
}

type observation struct {
	plan.Observation
	provider resource.Provider
	// guarded is the state with the results of the guards, nil before the guards run.
	guarded resource.State
	// generation is the number of changes before the state was read.
	generation int
	taken      bool
}

func (o *observer) of(n *plan.Node) plan.Observation {
	s := &o.seen[n.At]
	out := s.Observation
	if out.Valid = o.isValid(s, n.Resource.Type.Reads); s.taken && !out.Valid {
		out.Err, out.Guarded, out.GuardErr = nil, false, nil
	}

	return out
}

func (o *observer) state(n *plan.Node) resource.State { return o.seen[n.At].State }

func (o *observer) provider(n *plan.Node) resource.Provider { return o.seen[n.At].provider }

// spec returns the properties of a node, without unresolved deferred properties.
func (o *observer) spec(n *plan.Node) resource.Spec {
	if spec := o.seen[n.At].Spec; spec != nil {
		return spec
	}

	return n.Resource.Spec
}

// retry drops the errors and the deferred properties of a node, so that both are read again.
func (o *observer) retry(n *plan.Node) {
	s := &o.seen[n.At]
	if !s.taken {
		s.Err = nil
	}
	s.GuardErr = nil
	if n.Resource.ResolveDeferred != nil {
		s.Spec = nil
	}
}

func (o *observer) evalGuards(ctx context.Context, n *plan.Node) {
	s := &o.seen[n.At]
	s.GuardErr = plan.Protect(func() error {
		state, err := n.Resource.Type.EvalGuards(ctx, o.run.Env(n), s.provider, s.Spec, s.State)
		if err == nil {
			s.State, s.guarded, s.Guarded = state, state, true
		}
		return err
	})
}

// planned returns the state for planning a change again. It contains the results of the guards,
// which run once per run.
func (o *observer) planned(n *plan.Node) (resource.State, error) {
	s := &o.seen[n.At]
	if s.Err != nil || s.guarded == nil {
		return s.State, s.Err
	}

	return s.guarded, nil
}

// all observes the nodes that can be observed before the first change.
func (o *observer) all(ctx context.Context, nodes []*plan.Node) {
	var first []*plan.Node
	for _, n := range nodes {
		if !n.Follows && o.run.IsObservedFirst(n) {
			o.seen[n.At].Spec = n.Resource.Spec
			first = append(first, n)
		}
	}
	o.Read(ctx, first)
}

// refresh observes a node again if its observation is invalid. It includes the remaining nodes of
// the type if the type reads many states in one call.
func (o *observer) refresh(ctx context.Context, n *plan.Node) {
	s := &o.seen[n.At]
	if o.isValid(s, n.Resource.Type.Reads) {
		return
	}
	if s.Spec == nil {
		s.Spec = n.Resource.Spec
	}
	nodes := []*plan.Node{n}
	if n.Resource.Type.StatusAll != nil {
		for _, other := range o.run.rest(n) {
			if other.Resource.Type.SharesCalls(n.Resource.Type) && o.seen[other.At].taken {
				nodes = append(nodes, other)
			}
		}
	}
	o.Read(ctx, nodes)
	if ctx.Err() == nil {
		return
	}
	// The timeout of n has ended, so the states of the other nodes are not valid.
	for _, other := range nodes[1:] {
		o.seen[other.At].generation = -1
	}
}

// Read reads the states of nodes, grouped by type and provider. A type prepares before reading, or
// after reading a state that needs a reload.
func (o *observer) Read(ctx context.Context, nodes []*plan.Node) {
	for _, g := range o.groups(nodes) {
		if g.typ.PreparesFirst() && !o.prepare(ctx, g) {
			continue
		}
		o.readGroup(ctx, g)
		if o.needsReload(g) && o.prepare(ctx, g) {
			o.readGroup(ctx, g)
		}
	}
}

// statusGroup is the nodes of one type, or of one family, and one provider. Their states are read together.
type statusGroup struct {
	typ      *resource.Type
	provider resource.Provider
	nodes    []*plan.Node
}

// groups sorts nodes by type or family and by provider, and selects missing providers. A node without a suitable
// provider gets an error.
func (o *observer) groups(nodes []*plan.Node) []*statusGroup {
	type key struct{ calls, provider string }
	var out []*statusGroup
	byKey := map[key]*statusGroup{}
	for _, n := range nodes {
		s := &o.seen[n.At]
		if s.provider == nil {
			if err := o.selectProvider(n); err != nil {
				o.note(n, nil, err)
				continue
			}
		}
		k := key{n.Resource.Type.FamilyName(), s.provider.Name()}
		g, ok := byKey[k]
		if !ok {
			g = &statusGroup{typ: n.Resource.Type, provider: s.provider}
			byKey[k] = g
			out = append(out, g)
		}
		g.nodes = append(g.nodes, n)
	}

	return out
}

func (o *observer) selectProvider(n *plan.Node) error {
	s := &o.seen[n.At]

	return plan.Protect(func() error {
		p, err := n.Resource.Type.Select(o.run.Env(nil).Facts, s.Spec)
		if err == nil {
			s.provider = p
		}
		return err
	})
}

func (o *observer) needsReload(g *statusGroup) bool {
	stale := false
	for _, n := range g.nodes {
		s := &o.seen[n.At]
		if state, ok := s.State.(resource.Reloader); ok && s.Err == nil && !o.run.IsNoop(n) {
			s.Err = plan.Protect(func() error { stale = stale || state.NeedsReload(); return nil })
		}
	}

	return stale
}

// prepare runs Prepare of a type. Prepare changes the machine, so it does not run in noop. If it
// fails, the whole group fails.
func (o *observer) prepare(ctx context.Context, g *statusGroup) bool {
	changing := slices.DeleteFunc(slices.Clone(g.nodes), o.run.IsNoop)
	if g.typ.Prepare == nil || len(changing) == 0 {
		return true
	}
	err := plan.Protect(func() error { return g.typ.Prepare(ctx, o.run.Env(nil), g.provider, o.specs(changing)) })
	if err != nil {
		for _, n := range g.nodes {
			o.note(n, nil, err)
		}
	}

	return err == nil
}

func (o *observer) specs(nodes []*plan.Node) []resource.Spec {
	specs := make([]resource.Spec, len(nodes))
	for i, n := range nodes {
		specs[i] = o.seen[n.At].Spec
	}

	return specs
}

// readGroup reads all states of a group, in one call if the type supports it.
func (o *observer) readGroup(ctx context.Context, g *statusGroup) {
	var states []resource.State
	var errs []error
	err := plan.Protect(func() error {
		if g.typ.StatusAll == nil {
			states, errs = o.readEach(ctx, g)
		} else {
			states, errs = g.typ.StatusAll(ctx, o.run.Env(nil), g.provider, o.specs(g.nodes))
		}
		return nil
	})
	if err == nil && (len(states) != len(g.nodes) || len(errs) != len(g.nodes)) {
		err = fmt.Errorf("%s returned %d states for %d resources", g.typ.Name, len(states), len(g.nodes))
	}
	for i, n := range g.nodes {
		if err != nil {
			o.note(n, nil, err)
			continue
		}
		state, err := n.Resource.Type.Identify(o.seen[n.At].Spec, states[i], errs[i])
		o.note(n, state, err)
	}
}

func (o *observer) note(n *plan.Node, state resource.State, err error) {
	s := &o.seen[n.At]
	if err != nil {
		state = nil
	}
	s.State, s.Err, s.Guarded, s.GuardErr, s.generation, s.taken = state, err, false, nil, o.now, true
}

// chunk is the number of states that a worker reads at a time. It is large enough to make
// scheduling cheap, and small enough for the workers to end together.
const chunk = 32

// readEach reads the states of a group one by one, on all cores.
func (o *observer) readEach(ctx context.Context, g *statusGroup) ([]resource.State, []error) {
	states, errs := make([]resource.State, len(g.nodes)), make([]error, len(g.nodes))
	shared := o.run.Env(nil)
	parallel((len(g.nodes)+chunk-1)/chunk, runtime.GOMAXPROCS(0), func(at int) {
		for i := at * chunk; i < min((at+1)*chunk, len(g.nodes)); i++ {
			n, env := g.nodes[i], shared
			if n.Resource.Scope.Depth > 0 || n.Resource.Type.Include != nil {
				env = o.run.Env(n)
				env.Log = shared.Log
			}
			errs[i] = plan.Protect(func() (err error) {
				states[i], err = g.typ.Status(ctx, env, g.provider, o.seen[n.At].Spec)
				return err
			})
		}
	})

	return states, errs
}

// generations stores the number of the last change of each domain.
type generations struct {
	now  int
	last [8]int
}

func (g *generations) changed(domains resource.Domain) {
	g.now++
	for bit := range g.last {
		if domains.Overlaps(1 << bit) {
			g.last[bit] = g.now
		}
	}
}

// isValid reports whether nothing has changed in domains since an observation.
func (g *generations) isValid(s *observation, domains resource.Domain) bool {
	if !s.taken {
		return false
	}
	for bit := range g.last {
		if domains.Overlaps(1<<bit) && g.last[bit] > s.generation {
			return false
		}
	}

	return true
}

// parallel calls f with each number below count, at most limit calls at a time, and waits for all
// calls.
func parallel(count, limit int, f func(i int)) {
	if count == 1 {
		f(0) // avoids waking another goroutine
		return
	}
	// Workers keep their stacks, which would otherwise grow again in each call.
	var all sync.WaitGroup
	var started atomic.Int64
	for range min(count, limit) {
		all.Go(func() {
			for i := int(started.Add(1)) - 1; i < count; i = int(started.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}
