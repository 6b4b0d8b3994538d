package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/musterfleet/muster/agent/assignments"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// factCache holds the facts as they were gathered last.
type factCache struct {
	// gather is Options.Facts.
	gather func(ctx context.Context, dir string) (model.Facts, string, []error)
	log    *slog.Logger
	// ready is closed with the first facts.
	ready chan struct{}

	mu    sync.Mutex
	facts assignments.Facts
}

// now returns the facts as they are known.
func (f *factCache) now() assignments.Facts {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.facts
}

func (f *factCache) values() model.Facts { return f.now().Values }

// wait returns the facts, waiting for the first.
func (f *factCache) wait(ctx context.Context) (model.Facts, error) {
	select {
	case <-f.ready:
		return f.values(), nil
	case <-ctx.Done():
		return nil, errors.Join(assignments.ErrNoFacts, context.Cause(ctx))
	}
}

// run gathers facts at start and on the interval. It calls changed when what is
// stable of them changed: they are published then, and the assignments looked at
// again, because whether one holds may depend on them.
func (f *factCache) run(ctx context.Context, config *settings, changed func()) error {
	for ctx.Err() == nil {
		c := config.get()
		if f.gatherOnce(ctx, c.FactsDir) {
			changed()
		}
		tasks.Pause(ctx, tasks.Spread(c.Interval.Std(), tasks.Jitter), nil)
	}

	return nil
}

// gatherOnce gathers the facts, and reports whether the stable ones changed.
func (f *factCache) gatherOnce(ctx context.Context, dir string) (changed bool) {
	values, stable, errs := f.gather(ctx, dir)
	for _, err := range errs {
		f.log.WarnContext(ctx, "facts incomplete", "error", err)
	}
	next := assignments.Facts{Values: values, Stable: stable}
	f.mu.Lock()
	changed = f.facts.Stable != next.Stable
	next.Gathered = f.facts.Gathered + 1
	f.facts = next
	f.mu.Unlock()
	if next.Gathered == 1 {
		close(f.ready)
	}

	return changed
}
