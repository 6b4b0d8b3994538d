package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/model"
)

// end concludes the run in three steps: it completes the summary, reports it without the lock, and then
// records the outcome. So the report is on disk before the state shows the outcome. It does nothing if
// the agent stopped the run before it began, or if the manifest is no longer active.
func (r *run) end(ctx context.Context, summary *model.Run, err error) {
	var s *model.Run
	var current bool
	r.o.Running.Do(func() { s, current = r.complete(ctx, summary, err) })
	if s == nil {
		return
	}
	news := r.isNews(s, current)
	if news {
		r.o.Report.Run(s)
		LogRun(ctx, r.o.Log, s)
		r.count(r.key, s)
	}
	r.o.Running.Do(func() {
		if !current || !r.isCurrent() {
			r.concludeFormer(ctx, s)
			return
		}
		r.concludeHealth(s)
		if r.wake.Part == nil {
			r.conclude(s, news)
		} else {
			r.concludePart(s)
		}
		r.schedule.Resume(r.key, s.RetryAt) // a part is not in the next full run
		if r.gaveBack {
			r.schedule.Resume(r.key, time.Now())
		}
	})
}

// complete returns the summary of the run, nil if there is nothing to conclude. current reports whether
// the version of the run is active. The caller holds the lock.
func (r *run) complete(ctx context.Context, s *model.Run, err error) (_ *model.Run, current bool) {
	if k := r.shared[r.key]; k != nil && k.whole == r {
		k.whole = nil
	}
	if r.version == nil {
		r.version = r.view.Active(r.key)
	}
	if r.record == nil {
		r.record = r.o.Status.Record(r.key, false)
	}
	v := r.version
	switch {
	case v == nil || s == nil && (ctx.Err() != nil || errors.Is(err, errInactive)):
		return nil, false
	case errors.Is(err, errPaused):
		r.schedule.AskFor(r.key, r.wake)
		return nil, false
	case errors.Is(err, errDamaged):
		r.schedule.Postpone(r.key, r.wake)
		r.o.Set.Restore(v)
		return nil, false
	case s == nil:
		s = r.o.Runner.Unmade(v.Entry, v.Digest, r.wake.Cause)
		s.RunID = r.id
		err = fmt.Errorf("the run did not come to its end: %w", err)
	case r.wake.Part == nil:
		r.say(ctx, v.Resolution.PostMessage)
	}
	s.Retry = r.wake.Retry
	if err != nil {
		s.Errors = append(s.Errors, err.Error())
	}

	return s, r.isCurrent()
}

// isNews reports whether the run is reported. A run that only checked for drift is not.
func (r *run) isNews(s *model.Run, current bool) bool {
	switch {
	case !current:
		return true
	case r.wake.Part == nil:
		return r.record.IsNews(s)
	default:
		return s.Cause != model.CauseDrift || len(s.Errors) > 0 || r.o.Report.News(s.RunID)
	}
}

// concludeHealth schedules a repair if health checks of the run are critical.
func (r *run) concludeHealth(s *model.Run) {
	// A repair that a limit delays is not a repair that did not help.
	putOff := r.wake.Cause == model.CauseHealth && !s.RetryAt.IsZero()
	if !putOff && !r.observes && (r.wake.Part == nil || r.wake.Cause == model.CauseHealth || s.Counts.HealthChecks != (model.HealthCounts{})) {
		if due, part := r.checks.ConcludeRun(r.key, r.wake.Cause, r.version.Resolution.Resources); due {
			r.schedule.AskPart(r.key, model.CauseHealth, time.Now(), part)
		}
	}
	r.o.Status.SetHealth(r.key, r.checks.Counts(r.key))
}

// conclude records a full run of the active version.
func (r *run) conclude(s *model.Run, news bool) {
	retainRegistrations(r.o.Registrar, r.view)
	if k := r.sharedOf(r.key); len(r.late)+len(k.late) > 0 {
		k.late = r.late
		r.follow(r.key, r.late)
		r.showWatches()
	}
	outdated := r.record.Conclude(s, news)
	if news && !s.Outcome().IsFailure() {
		r.o.Set.Applied(r.version)
	}
	r.schedule.Ran(r.key, r.interval(r.key), r.hasBegun(s))
	if outdated {
		r.schedule.Ask(r.key, model.CauseSchedule, time.Now())
	}
}

// concludePart records a partial run. If it ends the failure of the manifest, a full run follows and
// updates the counts, unless one is in progress.
func (r *run) concludePart(s *model.Run) {
	if stale := r.record.ConcludePart(s); stale && r.sharedOf(r.key).whole == nil {
		r.schedule.Ask(r.key, model.CauseSchedule, time.Now())
	}
	if !r.hasBegun(s) {
		r.schedule.Retry(r.key) // a full run, because no watch reports the drift again
	}
}

// concludeFormer records a run of a version that is no longer active.
func (r *run) concludeFormer(ctx context.Context, s *model.Run) {
	if r.wake.Part == nil {
		retainRegistrations(r.o.Registrar, r.view)
		r.record.ConcludeFormer(s)
	}
	if !r.view.Has(r.key) {
		r.forget(ctx, r.key)
	}
}

// count counts a run of a manifest.
func (m *Manifests) count(key string, s *model.Run) {
	if m.Ran != nil {
		m.Ran(key, s)
	}
}

// hasBegun reports whether the run reached a resource and its bundle is not damaged.
func (r *run) hasBegun(s *model.Run) bool {
	if r.damaged {
		return false
	}

	return len(s.Errors) == 0 || s.Counts.Total > s.Counts.NotRun
}
