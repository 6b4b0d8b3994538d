package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// recorder records the results of resources in their transactions and calls the functions of
// Options.
type recorder struct {
	*access

	opts      Options
	refreshes *pendingRefreshes
	deferred  []deferredChange
	// outputs are the outputs of the resources that ran.
	outputs resource.Outputs
}

// defers reports whether a change of a node is made at the end of the run. interrupted reports that
// its health checks were interrupted.
func (r *recorder) defers(n *plan.Node, interrupted bool) bool {
	i := slices.IndexFunc(r.deferred, func(l deferredChange) bool { return l.node.Ref == n.Ref })
	if i >= 0 {
		r.deferred[i].interrupted = interrupted
	}

	return i >= 0
}

// register passes on the registrations of a resource after it ran. A run that only checks health
// registers nothing, but ends the registrations of critical resources.
func (r *recorder) register(n *plan.Node, t *model.Transaction, interrupted bool) {
	entries := n.Resource.Meta().RegisterWhenStable
	lost := !t.OK() || t.Skipped
	switch {
	case r.opts.Register == nil || len(entries) == 0 || t.NotRun:
	case r.IsNoop(n) || r.IgnoresDrift(n):
	case interrupted && !lost:
	case lost:
		r.opts.Register(n.Ref, nil)
	case !t.HealthCheckOnly:
		r.opts.Register(n.Ref, entries)
	}
}

// repaired counts and describes a change that repaired drift. made is the time of the change; zero
// means now.
func (r *recorder) repaired(n *plan.Node, t *model.Transaction, p resource.Plan, made time.Time) {
	if !t.Changed {
		return
	}
	r.report.noteDrift(n, p, true)
	if r.Cause.IsUnasked() && !p.Always {
		seen := cmp.Or(r.seen(n), r.opts.Woken, r.report.summary.Started)
		made = cmp.Or(made, time.Now()).UTC()
		t.Drift = &model.Repair{From: differed(t.Changes), SeenAt: seen.UTC(), RepairedAt: made, Latency: made.Sub(seen)}
	}
}

func (r *recorder) seen(n *plan.Node) time.Time {
	if r.opts.DriftSince == nil {
		return time.Time{}
	}

	return r.opts.DriftSince(n.Ref)
}

func (r *recorder) fail(ctx context.Context, n *plan.Node, t *model.Transaction, err error) {
	t.Failed, t.Noop = true, r.IsNoop(n)
	t.Errors = append(t.Errors, r.errorText(n, err))
	if seen := r.seen(n); r.Cause.IsUnasked() && !seen.IsZero() {
		t.Drift = &model.Repair{From: differed(t.Changes), SeenAt: seen.UTC()}
	}
	var p *plan.PanicError
	if errors.As(err, &p) {
		r.opts.Env.Log.ErrorContext(ctx, "resource type panicked", "resource", n.Ref.String(), "panic", r.secrets.Redact(fmt.Sprint(p.Value)), "stack", string(p.Stack))
	}
	r.Results[n.At].Failed = true
	r.EndAfter(n)
}

// outputsOf returns the outputs of a node that ran. It returns nil if the state is unknown, because
// the observation after a failed or interrupted change failed.
func (r *recorder) outputsOf(n *plan.Node, outcome resource.Outcome) map[string]any {
	state := r.observer.state(n)
	if n.Resource.Type.Outputs == nil || state == nil {
		return nil
	}

	return n.Resource.Type.Outputs(r.observer.spec(n), state, outcome)
}

func (r *recorder) keepOutputs(n *plan.Node, outcome resource.Outcome) {
	if n.Resource.Type.Outputs == nil {
		return
	}
	values := r.secrets.outputs(r.outputsOf(n, outcome), r.isSensitive(n))
	r.outputs[n.Ref] = values
	if alias := n.Resource.Meta().Alias; alias != "" {
		r.outputs[model.Ref{Type: n.Ref.Type, Name: alias}] = values
	}
}

func (r *recorder) changed(ctx context.Context, c dueChange, res changeResult) {
	t, result := c.t, &r.Results[c.node.At]
	if r.opts.Outputs && !r.isSensitive(c.node) {
		t.Outputs = r.secrets.shown(r.outputsOf(c.node, res.outcome))
	}
	if res.err != nil {
		result.Touched = res.touched
		r.report.noteDrift(c.node, c.plan, false)
		r.fail(ctx, c.node, t, res.err)
		return
	}
	planned := slices.Clone(t.Changes)
	for i, change := range t.Changes {
		t.Changes[i] = change.Done()
	}
	t.Changed, t.Refreshed = !res.outcome.Unchanged && !r.opts.Check, c.refresh && !c.plan.Unrefreshed
	result.Changed, result.Touched, result.ChangedAt = t.Changed, t.Changed, res.outcome.At
	if result.ChangedAt.IsZero() {
		result.ChangedAt = now()
	}
	r.keepOutputs(c.node, res.outcome)
	cleared := c.refresh && r.refreshes.made(ctx, c.node)
	if res.outcome.AtEnd != nil {
		r.deferred = append(r.deferred, deferredChange{dueChange: c, planned: planned, make: res.outcome.AtEnd, refreshed: cleared})
		return
	}
	r.repaired(c.node, t, c.plan, res.made)
}

// atEndTime limits each change at the end of a run.
const atEndTime = time.Minute

// deferredChange is a change that a type makes at the end of the run.
type deferredChange struct {
	dueChange
	// planned are the planned changes, for a failure.
	planned []model.Change
	make    func(context.Context) error
	// refreshed reports whether a pending refresh was cleared for this change.
	refreshed bool
	// interrupted reports whether the health checks were interrupted.
	interrupted bool
}

// finish makes the deferred changes in order and emits their transactions. After ctx has ended it
// makes no change, but counts the remaining changes as made. Usually one of them ended ctx, for
// example a restart of the agent.
func (r *recorder) finish(ctx context.Context) {
	for _, l := range r.deferred {
		n := r.Graph.Node(l.node.Ref)
		var err error
		if ctx.Err() == nil {
			err = plan.Protect(func() error {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEndTime)
				defer cancel()

				return l.make(ctx)
			})
		}
		if err == nil {
			r.repaired(n, l.t, l.plan, time.Time{})
		} else {
			l.t.Changed, l.t.Refreshed, l.t.Changes = false, false, l.planned
			if l.refreshed {
				r.refreshes.restore(ctx, n)
			}
			r.report.noteDrift(n, l.plan, false)
			r.fail(ctx, n, l.t, err)
		}
		r.register(n, l.t, l.interrupted)
		r.report.count(n, l.t)
	}
}

// reloadUnits runs a daemon-reload if the run changed unit files and no change of a service ran
// one. It also runs after an interrupt, because the next run finds the unit files up to date.
func (r *run) reloadUnits(ctx context.Context) {
	h := r.opts.Env.Host
	if h == nil {
		return
	}
	if r.opts.Env.Scope.ReadOnly() {
		if h.IsReloadPending(r.opts.Parents) {
			r.opts.Env.Log.WarnContext(ctx, "systemd would reload its unit files, because an earlier run was killed before the daemon-reload")
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEndTime)
	defer cancel()
	done, err := h.ReloadUnits(ctx, r.opts.RunID, r.opts.Parents)
	if err != nil {
		r.report.addError(err.Error())
	}
	if done {
		r.opts.Env.Log.InfoContext(ctx, "systemd reloaded its unit files")
	}
}

// wouldReloadUnits reports whether a plan causes a daemon-reload, because it writes or removes a
// unit file.
func (r *run) wouldReloadUnits(n *plan.Node, due resource.Plan) bool {
	reloads := r.opts.Env.Host.WouldReloadUnits
	if due.Paths != nil {
		return reloads(due.Paths...)
	}
	if n.Resource.Type.Relations == nil {
		return false
	}
	relations := n.Resource.Type.Relations(r.observer.spec(n))
	words := relations.Removes
	for _, p := range relations.Provides {
		if !p.Implicit {
			words = append(words, p.What)
		}
	}

	var paths []string
	for _, word := range words {
		if path, ok := strings.CutPrefix(word, resource.PathNeed("")); ok {
			paths = append(paths, path)
		}
	}

	return reloads(paths...)
}

// remedy returns the remedy for an error of the machine that is common to all types. It is empty if
// the error contains its remedy. uid is the user of the process.
func remedy(err error, uid int) string {
	missing := errors.As(err, new(resource.PrerequisiteError))
	switch {
	case errors.Is(err, host.ErrNoAccount):
		return "create it before this resource, for example with a package or an exec, or correct the name"
	case errors.Is(err, files.ErrNoParent) && missing:
		return "declare it before this resource, as a file with ensure: directory"
	case errors.Is(err, command.ErrBlankName):
		return "give each argument as a separate item"
	case errors.Is(err, command.ErrNotFound):
		return "install it first, or use its full path"
	case errors.Is(err, command.ErrNotExecutable):
		return "make it executable (chmod +x), or run it with its interpreter"
	case errors.Is(err, command.ErrNoDir):
		return "create it before this resource, or correct `cwd`"
	case errors.Is(err, fs.ErrPermission) && uid != 0:
		return fmt.Sprintf("muster runs as user %d; run it as root", uid)
	case errors.Is(err, fs.ErrPermission):
		return "the file may be immutable (lsattr), or its file system forbids the change"
	default:
		return ""
	}
}
