package plan

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Decide returns the next step for a node. It depends on the observation of the node and on the
// results of the nodes before it. The checks have the same order for every type: gate, properties,
// state, guards, plan.
func Decide(n *Node, obs Observation, up *Upstream) Decision {
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
	// The guards may return something else after an earlier node was applied.
	var until *Node
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

// Plan returns the pending changes of a resource. It returns an error for a panic of the type, and
// for a change that would remove what another resource provides.
func (u *Upstream) Plan(n *Node, spec resource.Spec, state resource.State, refresh bool) (due resource.Plan, err error) {
	err = Protect(func() (err error) {
		due, err = n.Resource.Type.Plan(spec, state, refresh)
		return err
	})
	if due.UndueFor != "" && u.Graph.ProviderBeside(n, due.UndueFor) != nil {
		return resource.Plan{}, nil
	}
	for _, what := range due.Removes {
		if p := u.Graph.ProviderBeside(n, what); p != nil && err == nil {
			err = fmt.Errorf("not changed, because it would also remove %s, which %s provides; remove one of the two resources", what, p.Ref)
		}
	}

	return due, err
}

func gate(n *Node, up *Upstream) (Decision, bool) {
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
		d.NotRun, d.Reason, d.RetryAt = true, "it runs after "+dep.Ref.String()+", which a limit defers", up.Results.of(dep).RetryAt
	}

	return d, true
}

// prerequisites returns the next step that a plan needs: properties, manifest or state.
func prerequisites(n *Node, obs Observation, up *Upstream) (Decision, bool) {
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

func judge(n *Node, up *Upstream, due resource.Plan, refresh bool, until *Node) Decision {
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

// failed decides on an error. If another resource implicitly creates what is missing, that resource
// runs first.
func failed(n *Node, up *Upstream, change Decision, err error) Decision {
	needs := resource.Prerequisites(err)
	if creator := up.implicitCreator(needs); creator != nil {
		return Decision{Kind: Wait, For: Creator, Creator: creator}
	}

	return foreseen(n, up, change, err)
}

// foreseen decides on an error. In noop another resource may provide what is missing. If it
// provides exactly that and the type returned a plan, this plan is the prediction.
func foreseen(n *Node, up *Upstream, change Decision, err error) Decision {
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

// unknown returns the decision for a node that is unknown until another node is applied. deferred
// are the properties that are unknown.
func unknown(until *Node, deferred ...string) Decision {
	words := "unknown until " + until.Ref.String() + " is applied"
	switch quoted := "`" + strings.Join(deferred, "`, `") + "`"; len(deferred) {
	case 0:
	case 1:
		words += ": " + quoted + " is known after apply"
	default:
		words += ": " + quoted + " are known after apply"
	}

	return Decision{Kind: Unknown, Until: until, Reason: words}
}

// PanicError is a panic of a type. It fails only the resource.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the value of the panic.
func (p *PanicError) Error() string { return fmt.Sprintf("panic in the resource type: %v", p.Value) }

// Protect returns the error of f, or a *PanicError if f panics.
func Protect(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()

	return f()
}

// Joins reports whether n can be changed in the batch of first, which precedes it.
func (u *Upstream) Joins(n, first *Node) bool {
	typ := n.Resource.Type
	if !typ.SharesCalls(first.Resource.Type) || n.Resource.ResolveDeferred != nil || u.IsNoop(n) || u.FailsFast(n) || u.ScopeOf(n).HealthCheckOnly {
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

	// A transaction has one timeout, so all its resources must have the same.
	return typ.ApplyAll == nil || n.Resource.Meta().Timeout == first.Resource.Meta().Timeout
}

// unmet returns the requirements that failed or are unmet.
func (u *Upstream) unmet(n *Node) []model.Ref {
	if u.ScopeOf(n).HealthCheckOnly {
		return nil // nothing changes, and all checks were requested
	}
	var out []model.Ref
	for _, dep := range n.Requires {
		if res := u.Results.of(dep); res.Failed || res.Unmet {
			out = append(out, dep.Ref)
		}
	}
	for _, ref := range n.RequiresElsewhere {
		// A reference that no manifest declares is unmet, also after reading the manifests during
		// the run. A resource of an excluded manifest counts as met, like every excluded resource.
		nowhere := !u.Prior.Knows(ref) && !u.Graph.IsExcluded(ref) && u.manifestUnknownUntil(n) == nil
		if nowhere || u.Prior.failed(ref, u.IsNoop(n)) {
			out = append(out, ref)
		}
	}

	return out
}
