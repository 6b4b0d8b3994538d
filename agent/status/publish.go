package status

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
)

const (
	// minInterval is the minimum time between two inventories of a node.
	minInterval = 5 * time.Minute
	// maxInterval is the time after which packages are read although no watch reported a change, and stored although
	// they did not change, because the store may have lost them.
	maxInterval = time.Hour
	// maxSpread spreads the inventories of nodes that install packages at the same time.
	maxSpread = 30 * time.Second
)

// Source reads the packages of a machine.
type Source interface {
	// Read returns the installed packages in a fixed order.
	Read(ctx context.Context) ([]model.Package, error)
	// Points returns the points to watch for changes.
	Points() []watch.Point
}

// Publisher stores the inventory of a node when its packages change.
type Publisher struct {
	Node   string
	Source Source
	// Arm watches a point; nil disables watching.
	Arm func(p watch.Point, wake func()) (watch.Watch, error)
	Put func(ctx context.Context, i model.Inventory) error
	// Off reports whether the configuration disables the inventory.
	Off func() bool
	Log *slog.Logger

	stored   []model.Package
	storedAt time.Time
}

// Run stores inventories until ctx ends. It logs a failure and retries.
func (p *Publisher) Run(ctx context.Context) error {
	changed := tasks.NewSignal()
	for _, point := range p.Source.Points() {
		if p.Arm == nil {
			break
		}
		w, err := p.Arm(point, changed.Notify)
		if err != nil {
			p.Log.DebugContext(ctx, "cannot watch the package database, reading it every hour", "path", point.Name, "error", err)
			continue
		}
		defer w.Close()
	}
	var wait tasks.Backoff
	failing := false
	for ctx.Err() == nil {
		if err := p.once(ctx); err != nil && ctx.Err() == nil {
			level := slog.LevelDebug
			if !failing {
				level = slog.LevelWarn
			}
			failing = true
			p.Log.Log(ctx, level, "inventory not stored, will retry", "error", err)
			tasks.Pause(ctx, min(wait.Next(), minInterval), nil)
			continue
		}
		failing = false
		wait.Reset()
		tasks.Pause(ctx, tasks.Spread(minInterval, tasks.Jitter), nil)
		tasks.Pause(ctx, tasks.Spread(maxInterval, tasks.Jitter), changed)
		tasks.Pause(ctx, rand.N(maxSpread), nil)
	}

	return nil
}

// once stores the packages if they changed or maxInterval has passed.
func (p *Publisher) once(ctx context.Context) error {
	if p.Off() {
		return nil
	}
	all, err := p.Source.Read(ctx)
	now := time.Now()
	if err != nil || len(all) == 0 || slices.Equal(all, p.stored) && now.Sub(p.storedAt) < maxInterval {
		return err
	}
	if err := p.Put(ctx, model.Inventory{Node: p.Node, At: now.UTC(), Packages: all}); err != nil {
		return err
	}
	p.stored, p.storedAt = all, now

	return nil
}
