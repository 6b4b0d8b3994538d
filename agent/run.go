package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/registrar"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/report"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/reconcile"
	"github.com/musterfleet/muster/resources/resource"
)

// run reconciles a manifest and reports. ctx ends when no further change is to
// be begun, hard when the one in hand is broken off. It gives false when the run
// failed before it came to any resource.
func (r *runner) run(ctx, hard context.Context, u *unit, w wake) bool {
	u.breakOff() // it makes the checks itself
	id := ksuid.New().String()
	var summary *model.Run
	err := tasks.Guard(r.log, "running "+u.key, func() (err error) {
		o := r.options(ctx, hard, u, w, id)
		o.JournalOf, o.Command = u.key, "muster agent"
		o.Locked = func(ctx context.Context, o *reconcile.Options) (*graph.Graph, error) {
			r.refreshGraph(ctx, u)
			fresh := r.options(ctx, hard, u, w, id)
			fresh.ReadAll, fresh.Refresh, u.health.refresh = r.readsAll(u), u.health.refresh, nil
			fresh.Register, fresh.Journal = r.registers(u), o.Journal
			fresh.OnTransaction = r.onTransaction(ctx, u, fresh.OnTransaction)
			o.Options = fresh.Options
			r.say(ctx, u.current.resolved.PreMessage)
			return u.current.graph, context.Cause(ctx)
		}
		summary, err = reconcile.Run(ctx, u.current.graph, o)
		if summary != nil {
			r.say(ctx, u.current.resolved.PostMessage)
		}
		return err
	})
	if summary == nil {
		if ctx.Err() != nil {
			return true // it never began, and is not tried again
		}
		summary = r.failedRun(u, u.current.entry, w.cause)
		summary.RunID, summary.Digest = id, u.current.digest
		err = fmt.Errorf("the run did not come to its end: %w", err)
	}
	if err != nil {
		summary.Errors = append(summary.Errors, err.Error())
	}
	if summary.Outcome() != model.OutcomeStable {
		r.changes++
	}
	r.keepRegistered()
	r.heal(u, w.cause, true)
	r.conclude(ctx, u, w, summary)

	return len(summary.Errors) == 0 || summary.Counts.Total > summary.Counts.NotRun
}

// say logs a message of a manifest.
func (r *runner) say(ctx context.Context, message string) {
	if message != "" {
		r.log.InfoContext(ctx, message)
	}
}

// options are what the engine is told.
func (r *runner) options(ctx, hard context.Context, u *unit, w wake, id string) reconcile.Options {
	l := u.current
	o := r.runOptions(ctx, hard, id, l.Noop)
	o.Env.Scope.Dir, o.Env.Scope.Origin = l.dir, r.origin(l.resolved)
	o.Secrets = l.resolved.Secrets
	o.Manifest, o.Revision, o.Digest, o.Cause = u.key, l.entry.Revision, l.digest, w.cause
	o.Admit = func(found []*resource.Resource) error { return r.admitLate(u, found) }
	o.Woken, o.FailOnError = w.at, l.resolved.FailOnError

	return o
}

// admitLate judges resources of a manifest that is read during the run of u, as
// those are that are known before: what another manifest declares differently is
// refused, and the shortest poll holds.
func (r *runner) admitLate(u *unit, found []*resource.Resource) error {
	if problems := r.claimsBut(u).conflicts(found); len(problems) > 0 {
		return problems
	}
	u.current.interval = shortest(u.current.interval, found)

	return nil
}

// runOptions are those that all runs have in common.
func (r *runner) runOptions(ctx, hard context.Context, id string, noop bool) reconcile.Options {
	c := r.Config()

	return reconcile.Options{Options: engine.Options{
		Env: resource.Env{
			Host: r.opts.Host, Facts: r.factsNow(), Log: r.log,
			Scope: resource.Scope{Noop: noop, Origin: r.origin(nil)},
		},
		Checker:  r.opts.Checker,
		Identity: report.Identity{Node: c.Node, Version: r.opts.Version, RunID: id},
		Grace: func(work context.Context) error {
			select {
			case <-hard.Done():
				return context.Cause(hard)
			case <-work.Done():
				return nil
			}
		},
		OnTransaction: func(t *model.Transaction) {
			r.logTransaction(ctx, t)
			r.reportTransaction(t)
		},
	}}
}

// origin gives what resources may ask of their manifest.
func (a *Agent) origin(resolved *manifest.Resolved) resource.Origin {
	if a.opts.Origin == nil {
		return nil
	}

	return a.opts.Origin(resolved)
}

// onTransaction adds to what is done with each transaction of a unit's run.
func (r *runner) onTransaction(ctx context.Context, u *unit, then func(*model.Transaction)) func(*model.Transaction) {
	return func(t *model.Transaction) {
		then(t)
		r.note(ctx, u, t)
	}
}

// logTransaction logs a transaction; that of a stable resource only for those
// who want to know everything, or every run would log every resource.
func (a *Agent) logTransaction(ctx context.Context, t *model.Transaction) {
	if t.Outcome() != model.OutcomeStable || a.log.Enabled(ctx, slog.LevelDebug) {
		key := "manifest"
		if t.Within != (model.Ref{}) {
			key = "assignment" // manifest is the one that declares it
		}
		report.Log(ctx, a.log.With(key, t.Manifest), t)
	}
}

// readsAll says that it is time to read all content anew.
func (r *runner) readsAll(u *unit) bool {
	u.runs++
	every := r.Config().ReadAllEvery

	return every > 0 && u.runs%every == 0
}

// refreshGraph resolves a manifest again when more than its text went into it.
// When that fails, what it came to last stays in force.
func (r *runner) refreshGraph(ctx context.Context, u *unit) {
	if u.current.resolved.Static {
		return
	}
	fresh := *u.current
	err := r.resolve(ctx, &fresh)
	if err == nil {
		if problems := r.claimsBut(u).conflicts(fresh.resolved.Resources); len(problems) > 0 {
			err = problems
		}
	}
	if err != nil {
		u.stale = r.turnDown(ctx, u, u.current.entry, err)
		r.showLate(u)
		r.tellRefused(ctx)
		return
	}
	if u.stale != "" {
		u.stale, u.retryAt, u.told = "", time.Time{}, ""
		u.wait.Reset()
		u.acquit(u.current.entry)
		r.showLate(u)
	}
	*u.current = fresh
}

// claimsBut gives what the other manifests in force declare.
func (r *runner) claimsBut(u *unit) claims {
	taken := claims{}
	for _, other := range r.order {
		if other != u {
			taken.add(other.current)
		}
	}

	return taken
}

// conclude reports a run and remembers what came of it.
func (r *runner) conclude(ctx context.Context, u *unit, w wake, s *model.Run) {
	outcome := s.Outcome()
	r.reportRun(s)
	r.sync()
	r.logRun(ctx, s)
	r.setManifest(u.key, func(state *model.ManifestState) {
		state.Outcome, state.At, state.Counts = outcome, time.Now().UTC(), s.Counts
		state.Revision, state.Digest, state.Error = u.current.entry.Revision, u.current.digest, ""
		if len(s.Errors) > 0 {
			state.Error = bounds.Text(s.Errors[0])
		}
	})
	switch done := outcome != model.OutcomeFailed && outcome != model.OutcomeNotRun; {
	case done && u.record.Applied != u.current.sum:
		u.record.Applied = u.current.sum
		r.keep(ctx, u)
	case !done && weight(w.cause) >= weight(model.CauseCommand):
		// The change that was asked for is not made yet, so the next run is not
		// one that only looks for drift.
		u.asked = true
		return
	}
	u.asked = false
}

func (a *Agent) logRun(ctx context.Context, s *model.Run) {
	level := map[model.Outcome]slog.Level{
		model.OutcomeFailed: slog.LevelError, model.OutcomeStable: slog.LevelInfo, model.OutcomeNotRun: slog.LevelWarn,
	}[s.Outcome()]
	// A node that has nothing to do says nothing, however often it looks.
	if s.Outcome() == model.OutcomeStable && s.Cause == model.CauseSchedule {
		level = slog.LevelDebug
	}
	attrs := []any{
		"manifest", s.Manifest, "revision", s.Revision, "cause", s.Cause, "run_id", s.RunID,
		"duration", s.Duration.Round(time.Millisecond), "resources", s.Counts.Total, "changed", s.Counts.Changed, "failed", s.Counts.Failed,
	}
	if n := len(s.Errors); n > 0 {
		attrs = append(attrs, "errors", n, "error", bounds.Text(s.Errors[0]))
	}
	a.log.Log(ctx, level, fmt.Sprintf("run %s", s.Outcome()), attrs...)
}

// registers takes over what the resources of a unit register.
func (r *runner) registers(u *unit) func(model.Ref, []model.RegisterEntry) {
	return func(ref model.Ref, entries []model.RegisterEntry) {
		r.registrar.Set(registrar.Source{Manifest: u.key, Resource: ref}, entries)
	}
}

// keepRegistered ends the registrations of what is not in force any more.
func (r *runner) keepRegistered() {
	inForce := map[registrar.Source]bool{}
	open := map[string]bool{}
	for _, u := range r.order {
		for _, res := range u.current.resolved.Resources {
			if len(res.Meta().RegisterWhenStable) > 0 {
				inForce[registrar.Source{Manifest: u.key, Resource: res.Ref()}] = true
			}
			open[u.key] = open[u.key] || res.Expand != nil
		}
	}
	r.registrar.Retain(func(s registrar.Source) bool { return inForce[s] || open[s.Manifest] })
}
