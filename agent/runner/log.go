package runner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
)

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
