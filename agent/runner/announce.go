package runner

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
	"github.com/musterfleet/muster/resources/engine"
)

// announcements reports changes of the assignments, within limits.
type announcements struct {
	log    *slog.Logger
	report *reporting.Reporter
	runner *Runner
	// rejected limits the log lines about rejected versions, reported their reports.
	rejected telemetry.RateLimitedLog
	reported quota
	// postponed limits the log lines about delayed versions, postponements their reports.
	postponed     telemetry.RateLimitedLog
	postponements quota
}

// announce reports the result of the assignments that put activated. Full runs begin after the reports are
// on disk, so that the report of an assignment precedes the reports of its run.
func (m *Manifests) announce(ctx context.Context, result desired.Result) {
	defer func() {
		m.o.Running.Do(func() { m.announcing = false })
		m.o.Wake()
	}()
	m.announcements.announce(ctx, result)
}

func (a *announcements) announce(ctx context.Context, result desired.Result) {
	for _, key := range result.Unassigned {
		a.report.Node(key, model.NodeUnassigned, key+" is not assigned any more; whatever it made is left as it is")
	}
	for _, p := range result.Postponed {
		a.reportPostponed(ctx, p)
	}
	for _, r := range result.Rejected {
		a.reportRejected(ctx, r)
	}
}

func (a *announcements) reportRejected(ctx context.Context, r desired.Rejection) {
	run := a.runner.Unmade(r.Entry, r.Digest, model.CauseManifest)
	run.Refused = true
	for _, p := range r.Problems.Sorted() {
		run.Errors = append(run.Errors, p.Error())
	}
	logged := a.rejected.Log(ctx, a.log, slog.LevelError, "assignment rejected", "manifest", r.Entry.Key, "revision", r.Entry.Revision, "problems", len(run.Errors), "active", r.Remaining)
	leftOut, ok := a.reported.takes(r.Entry.Key, time.Now())
	if !ok {
		return
	}
	a.report.Run(run) // which bounds its errors
	if logged {
		for _, problem := range run.Errors {
			a.log.ErrorContext(ctx, problem)
		}
	}
	// Most problems begin with the key.
	reason := bounds.Problems(r.Problems)
	if !strings.HasPrefix(reason, r.Entry.Key+":") {
		reason = r.Entry.Key + ": " + reason
	}
	reason += "; " + r.Remaining
	if leftOut > 0 {
		reason += fmt.Sprintf("; %d rejections before it were not reported", leftOut)
	}
	a.report.Node("", model.NodeRefused, reason)
}

func (a *announcements) reportPostponed(ctx context.Context, p desired.Postponement) {
	const event = "assignment not ready, will retry"
	attributes := []any{"manifest", p.Entry.Key, "revision", p.Entry.Revision, "error", p.Err, "retry", time.Until(p.Retry).Round(time.Second)}
	if !p.New {
		a.log.DebugContext(ctx, event, attributes...)
		return
	}
	a.postponed.Log(ctx, a.log, slog.LevelWarn, event, attributes...)
	if _, ok := a.postponements.takes(p.Entry.Key, time.Now()); !ok {
		return
	}
	run := a.runner.Unmade(p.Entry, model.DigestOf(p.Entry.Value), model.CauseManifest)
	run.Errors = []string{p.Err.Error()}
	a.report.Run(run)
}

// The limits of reports about rejected and delayed versions. A writer of one key can cause any number of
// them. The state of the node shows the newest of each key.
const (
	reportsOfAKey = 10
	reportsInAll  = 100
	reportsWithin = 10 * time.Minute
)

// quota counts the reports of one kind. The zero value is ready to use.
type quota struct {
	since time.Time
	keys  map[string]int
	all   int
	// leftOut counts the versions without a report since the last report.
	leftOut int
}

// takes reports whether a version of a key is reported, and how many before it were not.
func (q *quota) takes(key string, now time.Time) (leftOut int, ok bool) {
	if now.Sub(q.since) >= reportsWithin {
		q.since, q.keys, q.all = now, map[string]int{}, 0
	}
	if q.keys[key] >= reportsOfAKey || q.all >= reportsInAll {
		q.leftOut++
		return 0, false
	}
	q.keys[key]++
	q.all++
	leftOut, q.leftOut = q.leftOut, 0

	return leftOut, true
}

// LogTransaction logs a transaction. It logs stable and delayed resources only at level debug.
func LogTransaction(ctx context.Context, log *slog.Logger, t *model.Transaction) {
	if t.Outcome() != model.OutcomeStable && t.RetryAt.IsZero() || log.Enabled(ctx, slog.LevelDebug) {
		key := "manifest"
		if t.Within != (model.Ref{}) {
			key = "assignment" // the transaction names the declaring manifest
		}
		engine.LogTransaction(ctx, log.With(key, t.Manifest), t)
	}
}

// LogRun logs the summary of a run.
func LogRun(ctx context.Context, log *slog.Logger, s *model.Run) {
	level := map[model.Outcome]slog.Level{
		model.OutcomeFailed: slog.LevelError, model.OutcomeStable: slog.LevelInfo, model.OutcomeNotRun: slog.LevelWarn,
	}[s.Outcome()]
	if !s.RetryAt.IsZero() && s.Outcome() == model.OutcomeNotRun {
		level = slog.LevelInfo
	}
	// An idle node logs nothing. A repair logs only its resource.
	if s.Outcome() == model.OutcomeStable && s.Cause == model.CauseSchedule || s.Outcome() == model.OutcomeChanged && s.Cause == model.CauseDrift {
		level = slog.LevelDebug
	}
	attrs := []any{
		"manifest", s.Manifest, "revision", s.Revision, "cause", s.Cause, "run_id", s.RunID,
		"duration", s.Duration.Round(time.Millisecond), "resources", s.Counts.Total, "changed", s.Counts.Made(), "failed", s.Counts.Failed,
	}
	if s.Counts.Noop > 0 {
		attrs = append(attrs, "would_change", s.Counts.Noop)
	}
	if !s.RetryAt.IsZero() {
		attrs = append(attrs, "not_run", s.Counts.NotRun, "resumes", s.RetryAt)
	}
	if n := len(s.Errors); n > 0 {
		attrs = append(attrs, "errors", n, "error", bounds.Text(s.Errors[0]))
	}
	log.Log(ctx, level, fmt.Sprintf("run %s", s.Outcome()), attrs...)
}

func (m *Manifests) showWatches() {
	m.o.Status.SetFlapping(m.drift.Flapping())
	m.o.Status.SetWatches(m.drift.Watched())
}

func flappingText(f model.FlappingState) string {
	cause := "keeps being changed by an unknown program"
	switch {
	case f.Writer != "":
		cause = "keeps being changed, probably by " + f.Writer
	case f.Unit != "":
		cause = "keeps stopping: a program stops it, or it exits (see journalctl --unit=" + f.Unit + ")"
	}

	return fmt.Sprintf("%s of %s %s; the agent delays its repairs more and more until this ends", f.Resource, f.Manifest, cause)
}
