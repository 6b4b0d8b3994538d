package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/facts"
)

type factCache struct {
	gather func(ctx context.Context, dir string) (model.Facts, string, []error)
	log    *slog.Logger
	// changed is called when stable facts changed: the agent publishes them and evaluates the assignments
	// again, because conditions may depend on them.
	changed func()
	// ready is closed with the first facts.
	ready chan struct{}
	// gathering serializes gatherOnce and guards warned, the warnings about ignored files of its last call.
	gathering sync.Mutex
	warned    []string

	mu    sync.Mutex
	facts desired.Facts
	// stamp identifies the last read version of the fact files.
	stamp string
}

func (f *factCache) now() desired.Facts {
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
		return nil, errors.Join(desired.ErrNoFacts, context.Cause(ctx))
	}
}

func (f *factCache) run(ctx context.Context, config *settings) error {
	for ctx.Err() == nil {
		c := config.get()
		f.gatherOnce(ctx, c.FactsDir)
		f.follow(ctx, c.FactsDir, time.Now().Add(tasks.Spread(c.Interval.Std(), tasks.Jitter)))
	}

	return nil
}

// lookEvery is the interval of checks of the fact files. A change counts when two checks see the same
// version, because a program may still be writing.
const lookEvery = 3 * time.Second

// follow gathers the facts again after changes of a fact file, until a time. A manifest may have been
// rejected because of a missing fact.
func (f *factCache) follow(ctx context.Context, dir string, until time.Time) {
	for last := ""; ctx.Err() == nil && time.Now().Before(until); {
		tasks.Pause(ctx, min(lookEvery, time.Until(until)), nil)
		stamp := facts.Stamp(dir)
		if stamp == last {
			f.renew(ctx, dir)
		}
		last = stamp
	}
}

// renew gathers the facts again if a fact file changed, so that a new assignment sees facts that were written
// for it.
func (f *factCache) renew(ctx context.Context, dir string) {
	now := facts.Stamp(dir)
	f.mu.Lock()
	stamp, known := f.stamp, f.facts.Gathered > 0
	f.mu.Unlock()
	if !known || stamp == now {
		return
	}
	_ = tasks.Guard(f.log, "gathering facts", func() error { // which logs a panic
		f.gatherOnce(ctx, dir)
		return nil
	})
}

func (f *factCache) gatherOnce(ctx context.Context, dir string) {
	f.gathering.Lock()
	defer f.gathering.Unlock()
	stamp := facts.Stamp(dir) // before, so that later changes are read again
	f.mu.Lock()
	f.stamp = stamp
	f.mu.Unlock()
	values, stable, errs := f.gather(ctx, dir)
	warned := f.warned
	f.warned = nil
	for _, err := range errs {
		level := slog.LevelWarn
		if errors.Is(err, facts.ErrIgnored) {
			if slices.Contains(warned, err.Error()) {
				level = slog.LevelDebug
			}
			f.warned = append(f.warned, err.Error())
		}
		f.log.Log(ctx, level, "facts incomplete", "error", err)
	}
	next := desired.Facts{Values: values, Stable: stable}
	f.mu.Lock()
	changed := f.facts.Stable != next.Stable
	next.Gathered = f.facts.Gathered + 1
	f.facts = next
	f.mu.Unlock()
	if next.Gathered == 1 {
		close(f.ready)
	}
	if changed {
		f.changed()
	}
}
