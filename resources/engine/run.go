package engine

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

type run struct {
	*access
	opts      Options
	applier   *applier
	refreshes *pendingRefreshes
	announcer *announcer
	checks    *checks
	recorder  *recorder
	cursor    int // all nodes before it are done
	// inclusions counts the child manifests that were read during the run.
	inclusions int
}

func newRun(g *plan.Graph, opts Options) *run {
	if opts.RunID == "" {
		opts.RunID = ksuid.New().String()
	}
	opts.Env.RunID, opts.Env.Part = opts.RunID, g.PartOf() != nil
	opts.Env.RunEnv = []string{EnvRun + "=" + strings.Join(append(slices.Clone(opts.Parents), opts.RunID), ","), EnvState + "=" + opts.Env.Host.StateDir()}
	secrets := &secretSet{}
	secrets.add(opts.Secrets...)
	secrets.addOf(g.Nodes())
	up := &plan.Upstream{
		Terms: plan.Terms{Cause: opts.Cause, AlreadyConverged: opts.AlreadyConverged, Scope: opts.Env.Scope, FailOnError: opts.FailOnError}, Graph: g, Results: make([]plan.Result, g.Len()),
		Prior: opts.Prior, Pending: map[model.Ref]bool{}, Requested: opts.Refresh, Ended: map[model.Ref]string{},
	}
	rep := newReport(opts.Identity, g, opts.Env.Scope.Noop)
	a := &access{Upstream: up, env: opts.Env, report: rep, secrets: secrets}
	a.observer = &observer{run: a, seen: make([]observation, g.Len())}
	ann := &announcer{access: a, started: map[model.Ref]bool{}}
	rep.full, rep.onTransaction = opts.Full, func(n *plan.Node, t *model.Transaction) {
		if opts.OnTransaction != nil {
			opts.OnTransaction(t)
		}
		ann.end(n)
	}

	refreshes := &pendingRefreshes{journal: opts.Journal, up: up, log: opts.Env.Log}

	return &run{
		access: a, opts: opts, applier: &applier{a},
		refreshes: refreshes, announcer: ann, recorder: &recorder{access: a, opts: opts, refreshes: refreshes, outputs: resource.Outputs{}},
		checks: &checks{checker: opts.Checker, env: opts.Env.RunEnv, terms: &up.Terms},
	}
}

// do reconciles the resources of the graph. After ctx has ended, it starts no change, interrupts
// reads, and gives the current change the time of opts.Grace. Errors are in the summary and in the
// transactions.
func (r *run) do(ctx context.Context) *model.Run {
	work, end := graceful(ctx, r.opts.Grace)
	defer end()
	leave, err := enter(work, &r.opts)
	defer leave() // also after a panic
	if err != nil {
		r.Stopped = "the run cannot start: " + err.Error()
		r.report.addError(r.Stopped)
	}
	r.refreshes.recall(work)
	if r.Stopped == "" {
		r.observer.all(ctx, r.Graph.Nodes())
		r.checks.ahead(ctx, r.Graph.Nodes())
	}
	for n := r.next(); n != nil; n = r.next() {
		r.reconcileResource(ctx, work, n)
	}
	r.refreshes.clearUndeclared(work)
	r.reloadUnits(ctx)
	r.recorder.finish(ctx)
	if err := leave(); err != nil {
		r.report.addError(err.Error())
	}
	for _, text := range r.refreshes.errors {
		r.report.addError(text)
	}
	r.report.finish(r.opts.Woken)

	return &r.report.summary
}

// graceful returns a context for the current change, which ends after ctx and the grace.
func graceful(ctx context.Context, grace Grace) (work context.Context, end func()) {
	if grace == nil {
		return ctx, func() {}
	}
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	over := make(chan struct{})
	unused := context.AfterFunc(ctx, func() {
		defer close(over)
		cancel(grace(work))
	})

	return work, func() {
		cancel(nil)
		if !unused() {
			<-over
		}
	}
}

// enter starts the run of the host. The first call of leave ends it. A read-only run writes
// nothing.
func enter(ctx context.Context, o *Options) (leave func() error, err error) {
	h, none := o.Env.Host, func() error { return nil }
	switch {
	case h == nil:
		return none, nil
	case o.Env.Scope.ReadOnly():
		h.ForgetAccounts()
		return none, nil
	}
	if err := h.BeginRun(ctx, files.RunOptions{ReadAll: o.ReadAll, Joined: len(o.Parents) > 0}); err != nil {
		return none, err
	}

	return sync.OnceValue(h.EndRun), nil
}

// next returns the first node that is not done, or nil. A node of a part that follows others is
// done if nothing that it follows changed.
func (r *run) next() *plan.Node {
	for ; r.cursor < r.Graph.Len(); r.cursor++ {
		n := r.Graph.Nodes()[r.cursor]
		switch {
		case r.Results[r.cursor].Done:
		case n.Follows && !r.Results[r.cursor].Started && !r.Results.IsFollowedUp(n):
			r.End(n)
			r.report.notRun++
			r.report.emit(n, nil)
		default:
			return n
		}
	}

	return nil
}

// checkStop stops the run after its context has ended.
func (r *run) checkStop(ctx context.Context) {
	if r.Stopped == "" && ctx.Err() != nil {
		r.Stopped = "the run was stopped" + reason(ctx)
	}
}

func reason(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return ": " + cause.Error()
	}

	return ""
}

// access is the state of a run that its parts share: the decisions, the environment for the
// types, the observations, the report and the secrets.
type access struct {
	*plan.Upstream

	env      resource.Env
	report   *runReport
	secrets  *secretSet
	observer *observer
}

// Env returns the environment for the type of a node. n is nil for a call about many nodes.
func (a *access) Env(n *plan.Node) resource.Env {
	env := a.env
	env.Log = a.secrets.log(env.Log)
	if n == nil {
		return env
	}
	env.Log = env.Log.With("resource", n.Ref.String())
	if n.Owner != nil {
		env.Log = env.Log.With("manifest", n.Owner.Ref.Name)
	}
	env.Scope = a.ScopeOf(n)
	env.Children = a.report.counts[n.Ref]
	if a.IsNoop(n) {
		env.RunEnv = append(slices.Clone(env.RunEnv), EnvNoop+"=1")
	}

	return env
}

// rest returns the nodes after n that are not done.
func (a *access) rest(n *plan.Node) []*plan.Node {
	var out []*plan.Node
	for _, other := range a.Graph.Nodes()[n.At+1:] {
		if !a.Results[other.At].Done {
			out = append(out, other)
		}
	}

	return out
}

// errorText returns the redacted text of an error of a node, with its remedy.
func (a *access) errorText(n *plan.Node, err error) string {
	text := a.secrets.Error(err, a.isSensitive(n))
	if do := remedy(err, os.Geteuid()); do != "" {
		text += " (" + do + ")"
	}

	return text
}

func (a *access) changes(n *plan.Node, due resource.Plan) []model.Change {
	return a.secrets.changes(due, a.isSensitive(n))
}

// isSensitive reports whether all values of a resource are secret, as declared or after its
// deferred properties are resolved.
func (a *access) isSensitive(n *plan.Node) bool {
	return n.Resource.Sensitive() || a.observer.spec(n).Meta().Sensitive
}
