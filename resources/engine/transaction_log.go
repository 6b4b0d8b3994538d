package engine

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// LogTransaction writes one log line for a resource (spec/formats.md, "Command line"): INFO if
// stable, WARN if changed, ERROR if failed.
func LogTransaction(ctx context.Context, log *slog.Logger, t *model.Transaction) {
	level, word := lineOf(t)
	if c := t.HealthCheck; slices.ContainsFunc(c, func(h model.HealthResult) bool { return h.Status != model.HealthOK }) {
		level = max(level, slog.LevelWarn)
	}
	if !log.Enabled(ctx, level) {
		return
	}
	var attrs []slog.Attr
	if !isUnseen(t) {
		attrs = append(attrs, slog.String("ensure", t.RequestedEnsure))
	}
	attrs = append(attrs, slog.Duration("runtime", t.Duration.Round(time.Millisecond)))
	if t.Within != (model.Ref{}) {
		attrs = append(attrs, slog.String("manifest", t.Within.Name))
	}
	if t.Repaired() {
		attrs = append(attrs, slog.String("cause", string(t.Cause)), slog.String("latency", model.ShortDuration(t.Drift.Latency)))
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
	attrs = append(attrs, healthOf(t)...)
	if len(t.Errors) > 0 {
		if t.Source.Line > 0 {
			attrs = append(attrs, slog.String("at", t.Source.String()))
		}
		attrs = append(attrs, slog.String("error", strings.Join(t.Errors, "; ")))
	}
	log.LogAttrs(model.WithRef(ctx, t.Ref()), level, t.Ref().String()+" "+word, attrs...)
}

// isUnseen reports whether only the health of a resource was observed.
func isUnseen(t *model.Transaction) bool { return t.HealthCheckOnly && t.FinalEnsure == "" }

// healthOf returns the names of the checks that are not ok, and the output of those that are not
// critical, because the errors contain the output of critical checks. It returns "ok" if all checks
// are ok.
func healthOf(t *model.Transaction) []slog.Attr {
	var words, outputs []string
	for _, h := range t.HealthCheck {
		if h.Status == model.HealthOK {
			continue
		}
		words = append(words, h.Name+":"+string(h.Status))
		if line, _, _ := strings.Cut(h.Output, "\n"); line != "" && h.Status != model.HealthCritical {
			outputs = append(outputs, h.Name+": "+line)
		}
	}
	if len(words) == 0 && len(t.HealthCheck) > 0 {
		words = []string{string(model.HealthOK)}
	}
	var out []slog.Attr
	if len(words) > 0 {
		out = append(out, slog.String("health", strings.Join(words, ",")))
	}
	if len(outputs) > 0 {
		out = append(out, slog.String("output", strings.Join(outputs, "; ")))
	}

	return out
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
		return slog.LevelInfo, steady(t)
	}
}

// steady returns the word for a resource without an event. A resource that was not observed is not
// called stable.
func steady(t *model.Transaction) string {
	switch {
	case !isUnseen(t):
		return "stable"
	case len(t.HealthCheck) > 0:
		return "checked"
	default:
		return "not checked"
	}
}
