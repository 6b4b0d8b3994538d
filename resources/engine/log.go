package engine

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// LogTransaction writes the one line that a resource gets in the log
// (spec/formats.md, "Command line"): INFO when stable, WARN when changed, ERROR
// when failed.
func LogTransaction(ctx context.Context, log *slog.Logger, t *model.Transaction) {
	level, word := lineOf(t)
	attrs := []slog.Attr{slog.String("ensure", t.RequestedEnsure), slog.Duration("runtime", t.Duration.Round(time.Millisecond))}
	if t.Within != (model.Ref{}) {
		attrs = append(attrs, slog.String("manifest", t.Within.Name))
	}
	if t.Provider != "" {
		attrs = append(attrs, slog.String("provider", t.Provider))
	}
	if t.NoopMessage != "" {
		attrs = append(attrs, slog.String("noop", t.NoopMessage))
	}
	if t.SkipReason != "" && t.SkipReason != t.NoopMessage {
		attrs = append(attrs, slog.String("reason", t.SkipReason))
	}
	if len(t.UnmetRequirements) > 0 {
		refs := make([]string, len(t.UnmetRequirements))
		for i, ref := range t.UnmetRequirements {
			refs[i] = ref.String()
		}
		attrs = append(attrs, slog.String("unmet", strings.Join(refs, ",")))
	}
	if health, troubled := healthOf(t); health != "" {
		attrs = append(attrs, slog.String("health", health))
		if troubled {
			level = max(level, slog.LevelWarn)
		}
	}
	if len(t.Errors) > 0 {
		attrs = append(attrs, slog.String("error", strings.Join(t.Errors, "; ")))
	}
	log.LogAttrs(ctx, level, t.Ref().String()+" "+word, attrs...)
}

// healthOf gives the checks that are not ok, or that all are, and nothing where
// none was made.
func healthOf(t *model.Transaction) (text string, troubled bool) {
	var words []string
	for _, h := range t.HealthCheck {
		if h.Status != model.HealthOK {
			words = append(words, h.Name+":"+string(h.Status))
		}
	}
	if len(words) == 0 && len(t.HealthCheck) > 0 {
		return string(model.HealthOK), false
	}

	return strings.Join(words, ","), len(words) > 0
}

func lineOf(t *model.Transaction) (slog.Level, string) {
	switch t.Outcome() {
	case model.OutcomeFailed:
		return slog.LevelError, "failed"
	case model.OutcomeUnmet:
		return slog.LevelError, "skipped"
	case model.OutcomeNotRun:
		return slog.LevelWarn, "not run"
	case model.OutcomeNoop:
		return slog.LevelWarn, "would change"
	case model.OutcomeRefreshed:
		return slog.LevelWarn, "refreshed"
	case model.OutcomeChanged:
		return slog.LevelWarn, "changed"
	case model.OutcomeSkipped:
		return slog.LevelInfo, "skipped"
	default:
		return slog.LevelInfo, "stable"
	}
}
