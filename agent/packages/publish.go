package packages

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
	// Every is the least time between two inventories of a node.
	Every = 5 * time.Minute
	// again is after how long an inventory is stored again although it did not change: the
	// store may have lost it. It is also how often a machine that cannot be watched is read.
	again = time.Hour
	// maxSpread spreads the inventories of nodes that install packages at the same time.
	maxSpread = 30 * time.Second
)

// Source is the machine.
type Source interface {
	Read(ctx context.Context) ([]model.Package, error)
	Points() []watch.Point
}

// Publisher stores the inventory of a node when its packages change. Run it once.
type Publisher struct {
	Node   string
	Source Source
	// Arm watches a point, nil watches nothing.
	Arm func(p watch.Point, wake func()) (watch.Watch, error)
	// Put stores an inventory.
	Put func(ctx context.Context, i model.Inventory) error
	// Off reports whether the configuration turns the inventory off.
	Off func() bool
	Log *slog.Logger

	stored   []model.Package
	storedAt time.Time
}

// Run reads and stores until ctx ends. A failure is logged and tried again later.
func (p *Publisher) Run(ctx context.Context) error {
	changed := tasks.NewSignal()
	for _, point := range p.Source.Points() {
		if p.Arm == nil {
			break
		}
		w, err := p.Arm(point, changed.Notify)
		if err != nil {
			p.Log.DebugContext(ctx, "packages are read every hour, their database cannot be watched", "error", err)
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
			tasks.Pause(ctx, min(wait.Next(), Every), nil)
			continue
		}
		failing = false
		wait.Reset()
		tasks.Pause(ctx, tasks.Spread(Every, tasks.Jitter), nil)
		tasks.Pause(ctx, tasks.Spread(again, tasks.Jitter), changed)
		tasks.Pause(ctx, rand.N(maxSpread), nil)
	}

	return nil
}

// once stores the packages unless they are stored already.
func (p *Publisher) once(ctx context.Context) error {
	if p.Off() {
		return nil
	}
	all, err := p.Source.Read(ctx)
	now := time.Now()
	if err != nil || len(all) == 0 || slices.Equal(all, p.stored) && now.Sub(p.storedAt) < again {
		return err
	}
	if err := p.Put(ctx, model.Inventory{Node: p.Node, At: now.UTC(), Packages: all}); err != nil {
		return err
	}
	p.stored, p.storedAt = all, now

	return nil
}
