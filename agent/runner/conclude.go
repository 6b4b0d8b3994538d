package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/model"
)

// end takes over what came of the run, and reports it. There is no summary of one that did
// not come to its end. One that the agent stopped before it began is not tried again.
func (r *run) end(ctx context.Context, summary *model.Run, err error) {
	if r.version == nil {
		r.version = r.view.Active(r.key)
	}
	if r.record == nil {
		r.record = r.o.Status.Record(r.key, false)
	}
	v := r.version
	if v == nil || summary == nil && (ctx.Err() != nil || errors.Is(err, errInactive)) {
		return
	}
	switch {
	case errors.Is(err, errPaused):
		r.schedule.AskFor(r.key, r.wake)
		return
	case errors.Is(err, errDamaged):
		r.schedule.Postpone(r.key, r.wake)
		r.o.Set.Restore(v)
		return
	}
	switch {
	case summary == nil:
		summary = r.o.Runner.Unmade(v.Entry, v.Digest, r.wake.Cause)
		summary.RunID = r.id
		err = fmt.Errorf("the run did not come to its end: %w", err)
	case r.wake.Part == nil:
		r.say(ctx, v.Resolution.PostMessage)
	}
	summary.Retry = r.wake.Retry
	if err != nil {
		summary.Errors = append(summary.Errors, err.Error())
	}
	if r.wake.Part == nil {
		retainRegistrations(r.o.Registrar, r.view)
	}
	if !r.isCurrent() {
		r.concludeFormer(ctx, summary)
		return
	}
	if k := r.keptOf(r.key); r.wake.Part == nil && len(r.late)+len(k.late) > 0 {
		k.late = r.late
		r.follow(r.key, r.late)
	}
	// A repair that a limit puts off is none that did not help.
	putOff := r.wake.Cause == model.CauseHealth && !summary.RetryAt.IsZero()
	if !putOff && !r.observes && (r.wake.Part == nil || r.wake.Cause == model.CauseHealth || summary.Counts.HealthChecks != (model.HealthCounts{})) {
		if due, part := r.checks.ConcludeRun(r.key, r.wake.Cause, v.Resolution.Resources); due {
			r.schedule.AskPart(r.key, model.CauseHealth, time.Now(), part)
		}
	}
	r.o.Status.SetHealth(r.key, r.checks.Counts(r.key))
	if r.wake.Part != nil {
		r.concludePart(ctx, summary)
		if !r.hasBegun(summary) {
			r.schedule.Retry(r.key) // of all of it: what drifted is not seen again
		}
	} else {
		r.conclude(ctx, summary)
		r.schedule.Ran(r.key, r.interval(r.key), r.hasBegun(summary))
	}
	// Also after a part: what only follows a repair is not in the next one.
	r.schedule.Resume(r.key, summary.RetryAt)
	if r.unusedTurn {
		r.schedule.Resume(r.key, time.Now())
	}
}

// conclude reports a full run of the active version and records its outcome. A run that only checked
// for drift is not reported.
func (r *run) conclude(ctx context.Context, s *model.Run) {
	news := r.record.IsNews(s)
	if news {
		r.report(ctx, s)
	}
	if outdated := r.record.Conclude(s); outdated {
		r.schedule.Ask(r.key, model.CauseSchedule, time.Now())
	}
	if news && !s.Outcome().IsFailure() {
		r.o.Set.Applied(r.version)
	}
}

// concludePart reports a partial run and records its outcome. If it ends the failure of the manifest, a
// full run follows and updates the counts, unless one is in progress.
func (r *run) concludePart(ctx context.Context, s *model.Run) {
	if s.Cause != model.CauseDrift || len(s.Errors) > 0 || r.o.Report.News(s.RunID) {
		r.report(ctx, s)
	}
	if stale := r.record.ConcludePart(s); stale && r.keptOf(r.key).whole == nil {
		r.schedule.Ask(r.key, model.CauseSchedule, time.Now())
	}
}

// concludeFormer reports a run of a version that is no longer active.
func (r *run) concludeFormer(ctx context.Context, s *model.Run) {
	r.record.ConcludeFormer(s)
	r.report(ctx, s)
	if !r.view.Has(r.key) {
		r.forget(ctx, r.key)
	}
}

// report reports, logs and counts a run.
func (r *run) report(ctx context.Context, s *model.Run) {
	r.o.Report.Run(s)
	LogRun(ctx, r.o.Log, s)
	r.count(r.key, s)
}

// count counts the run of a manifest.
func (m *Manifests) count(key string, s *model.Run) {
	if m.Ran != nil {
		m.Ran(key, s)
	}
}

// hasBegun reports whether the run came to a resource, and failed by no damage of its
// bundle, which another one repairs.
func (r *run) hasBegun(s *model.Run) bool {
	if r.damaged {
		return false
	}

	return len(s.Errors) == 0 || s.Counts.Total > s.Counts.NotRun
}
