package plan

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// Decide returns what is due to a node, from what was observed of it and
// what came of the nodes before it. The order of its questions holds for every
// type: gate, properties, state, guards, plan.
func Decide(n *graph.Node, obs Observation, up *Upstream) Decision {
	if d, skipped := gate(n, up); skipped {
		return d
	}
	if up.ScopeOf(n).HealthCheckOnly && n.Resource.Type.Include == nil {
		return Decision{Kind: CheckOnly}
	}
	if d, waits := prerequisites(n, obs, up); waits {
		return d
	}
	refresh := up.refreshDue(n)
	typ := n.Resource.Type
	guarded := typ.HasGuards != nil && (obs.Guarded || obs.GuardErr != nil || typ.HasGuards(obs.Spec, obs.State, refresh))
	if guarded && !obs.Guarded && obs.GuardErr == nil {
		return Decision{Kind: Wait, For: Guards}
	}
	// Guards may answer otherwise once something before the node is applied.
	var until *graph.Node
	if guarded && up.IsNoop(n) {
		until = up.pendingBefore(n)
	}
	if obs.GuardErr != nil {
		if until != nil {
			return unknown(until)
		}
		return failed(n, up, Decision{}, obs.GuardErr)
	}
	made := refresh && up.isRefreshed(n, obs.State)
	due, err := up.Plan(n, obs.Spec, obs.State, refresh && !made)
	due.Unrefreshed = due.Unrefreshed || made
	if err != nil {
		return failed(n, up, Decision{Kind: Change, Plan: due, Refresh: refresh, Until: until}, err)
	}

	return judge(n, up, due, refresh, until)
}

// Plan returns what is due to a resource. A panic of its type is an error, and so is a change
// that would remove what another resource provides.
func (u *Upstream) Plan(n *graph.Node, spec resource.Spec, state resource.State, refresh bool) (due resource.Plan, err error) {
	err = Protect(func() (err error) {
		due, err = n.Resource.Type.Plan(spec, state, refresh)
		return err
	})
	if due.UndueFor != "" && u.Graph.ProviderBeside(n, due.UndueFor) != nil {
		return resource.Plan{}, nil
	}
	for _, what := range due.Removes {
		if p := u.Graph.ProviderBeside(n, what); p != nil && err == nil {
			err = fmt.Errorf("not changed, because it would remove %s too, which %s provides: one of the two has to go", what, p.Ref)
		}
	}

	return due, err
}

// gate skips a resource that gets no turn.
func gate(n *graph.Node, up *Upstream) (Decision, bool) {
	d := Decision{Kind: Skip}
	switch {
	case up.Stopped != "":
		d.NotRun, d.Reason = true, up.Stopped
	case up.endedBy(n) != "":
		d.NotRun, d.Reason = true, up.endedBy(n)
	case n.Resource.Excluded != "":
		d.Reason = n.Resource.Excluded
	case up.IgnoresDrift(n):
		d.Reason = "drift is ignored"
	default:
		if d.Unmet = up.unmet(n); len(d.Unmet) > 0 {
			d.Reason = "requirements are not met"
			break
		}
		dep := up.Results.firstDeferred(n)
		if dep == nil {
			return d, false
		}
		d.NotRun, d.Reason, d.RetryAt = true, "it comes after "+dep.Ref.String()+", which a limit puts off", up.Results.of(dep).RetryAt
	}

	return d, true
}

// prerequisites returns what must be had before a plan can be made, in order.
func prerequisites(n *graph.Node, obs Observation, up *Upstream) (Decision, bool) {
	r := n.Resource
	if r.Expand != nil {
		if by := up.Graph.Node(r.Brings); by != nil && up.IsNoop(n) && up.Results.of(by).Effect != None {
			return unknown(by), true
		}
	} else if until := up.manifestUnknownUntil(n); until != nil {
		return unknown(until), true
	}
	if r.ResolveDeferred != nil && obs.Spec == nil && obs.Err == nil {
		if until := up.outputsUnknownUntil(n); until != nil && up.IsNoop(n) {
			return unknown(until, r.Waiting...), true
		}
		return Decision{Kind: Wait, For: Properties}, true
	}
	switch {
	case obs.Err != nil:
		return failed(n, up, Decision{}, obs.Err), true
	case r.Expand != nil:
		return Decision{Kind: Wait, For: Manifest}, true
	case !obs.Valid:
		return Decision{Kind: Wait, For: State}, true
	}

	return Decision{}, false
}

// judge decides on a plan that the type made of the state.
func judge(n *graph.Node, up *Upstream, due resource.Plan, refresh bool, until *graph.Node) Decision {
	empty := due.Empty()
	change := Decision{Kind: Change, Plan: due, Refresh: refresh, Until: until, More: up.changerOf(n, due.ComparedWith)}
	switch {
	case empty && until != nil:
		return unknown(until)
	case empty && !refresh && up.awaitsUnknown(n):
		return unknown(up.pendingBefore(n))
	case empty && change.More != nil:
		return unknown(change.More)
	case due.Missing != nil && up.IsNoop(n):
		if p, _ := up.providerOf(n, due.Missing); p != nil {
			return unknown(up.Results.of(p).Until)
		}
	case due.Fails != nil && up.IsNoop(n):
		return foreseen(n, up, change, due.Fails)
	case !refresh && up.IsNoop(n):
		if until := up.outdatedUntil(n, empty); until != nil {
			return unknown(until)
		}
	}
	if empty {
		return Decision{Kind: Stable, Refresh: refresh}
	}

	return change
}

// failed decides on an error. What is missing may be created by another resource
// on its way, which then goes first.
func failed(n *graph.Node, up *Upstream, change Decision, err error) Decision {
	needs := resource.Prerequisites(err)
	if creator := up.implicitCreator(needs); creator != nil {
		return Decision{Kind: Wait, For: Creator, Creator: creator}
	}

	return foreseen(n, up, change, err)
}

// foreseen decides on an error that in noop may be about what another resource
// would bring: when that provides just what is needed, and the type could plan
// all the same, that change is what would be done.
func foreseen(n *graph.Node, up *Upstream, change Decision, err error) Decision {
	if needs := resource.Prerequisites(err); up.IsNoop(n) && needs != nil {
		switch p, exact := up.providerOf(n, needs); {
		case p != nil && exact && !change.Plan.Empty():
			return change
		case p != nil:
			return unknown(up.Results.of(p).Until)
		}
	}

	return Decision{Kind: Fail, Err: err}
}

// unknown is the decision that nothing is known before until is applied; late
// are the properties that are known then.
func unknown(until *graph.Node, late ...string) Decision {
	words := "unknown until " + until.Ref.String() + " is applied"
	switch quoted := "`" + strings.Join(late, "`, `") + "`"; len(late) {
	case 0:
	case 1:
		words += ": " + quoted + " is known after apply"
	default:
		words += ": " + quoted + " are known after apply"
	}

	return Decision{Kind: Unknown, Until: until, Reason: words}
}

// PanicError is a panic of a type: it fails the resource and nothing else.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns what the type panicked with.
func (p *PanicError) Error() string { return fmt.Sprintf("panic in the resource type: %v", p.Value) }

// Protect returns the error of f, a *PanicError when it panicked.
func Protect(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()

	return f()
}

// Joins reports whether n may be changed together with first, which precedes it.
func (u *Upstream) Joins(n, first *graph.Node) bool {
	typ := n.Resource.Type
	if typ != first.Resource.Type || n.Resource.ResolveDeferred != nil || u.IsNoop(n) || u.FailsFast(n) || u.ScopeOf(n).HealthCheckOnly {
		return false
	}
	if _, skipped := gate(n, u); skipped {
		return false
	}
	for _, dep := range n.Before {
		if !u.Results.of(dep).Done {
			return false
		}
	}

	// A transaction has one timeout: that of each resource in it.
	return typ.ApplyAll == nil || n.Resource.Meta().Timeout == first.Resource.Meta().Timeout
}

// unmet returns the requirements that failed, or were themselves unmet.
func (u *Upstream) unmet(n *graph.Node) []model.Ref {
	if u.ScopeOf(n).HealthCheckOnly {
		return nil // nothing is changed, and every check is asked for
	}
	var out []model.Ref
	for _, dep := range n.Requires {
		if res := u.Results.of(dep); res.Failed || res.Unmet {
			out = append(out, dep.Ref)
		}
	}
	for _, ref := range n.RequiresElsewhere {
		// What none of the manifests declares that were read during the run either is
		// unmet; what an excluded one declares counts as met, like any that control excludes.
		nowhere := !u.Prior.Knows(ref) && !u.Graph.IsExcluded(ref) && u.manifestUnknownUntil(n) == nil
		if nowhere || u.Prior.failed(ref, u.IsNoop(n)) {
			out = append(out, ref)
		}
	}

	return out
}
