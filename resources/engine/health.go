package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
)

// errCritical is a resource of which a health check is critical.
var errCritical = errors.New("is critical")

// conclude makes the health checks of a resource after its turn, and ends it.
func (r *run) conclude(ctx context.Context, n *graph.Node, t *model.Transaction) {
	interrupted := false
	if state := r.observer.State(n); state != nil && !t.Skipped {
		t.FinalEnsure = state.State().Ensure
	}
	if r.checks.isMade(n) && !t.Failed && !t.Skipped {
		results, ahead := r.checks.made[n.Ref]
		if ahead {
			t.Timestamp = t.Timestamp.Add(-longest(results))
		} else {
			results = r.checks.of(ctx, []*graph.Node{n})[0]
		}
		made := slices.DeleteFunc(slices.Clone(results), func(h model.HealthResult) bool { return h.Status == "" })
		r.judge(ctx, n, t, made)
		if interrupted = len(made) < len(results); interrupted {
			r.interruptChecks(ctx, n, t)
		}
	}
	r.recorder.end(n, t, interrupted)
}

// longest returns how long checks took that were made at the same time.
func longest(results []model.HealthResult) time.Duration {
	var out time.Duration
	for _, h := range results {
		out = max(out, h.Duration)
	}

	return out
}

// interruptChecks records that not all health checks of a resource were made, so
// that nobody takes it, or the run, for healthy.
func (r *run) interruptChecks(ctx context.Context, n *graph.Node, t *model.Transaction) {
	r.checkStop(ctx)
	t.SkipReason = "its health checks were broken off: " + r.Stopped
	switch {
	case t.Failed:
	case t.Changed || t.Refreshed:
		r.report.AddError(n.Ref.String() + ": " + t.SkipReason)
	default:
		t.NotRun = true
	}
}

// judge records the results of health checks. Only a critical one fails the resource.
func (r *run) judge(ctx context.Context, n *graph.Node, t *model.Transaction, results []model.HealthResult) {
	for _, h := range results {
		line, _, _ := strings.Cut(h.Output, "\n")
		h.Output = r.secrets.Redact(h.Output)
		if n.Resource.Sensitive() {
			h.Output, line = "", ""
		}
		t.HealthCheck = append(t.HealthCheck, h)
		if h.Status != model.HealthCritical {
			continue
		}
		err := fmt.Errorf("health check %q %w", h.Name, errCritical)
		if line != "" {
			err = fmt.Errorf("%w: %s", err, line)
		}
		r.recorder.fail(ctx, n, t, err)
	}
}
