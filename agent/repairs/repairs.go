// Package repairs keeps what a node knows of drift between its runs: what is followed,
// what may have drifted, what flaps, and what stands as it is while a part runs.
package repairs

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/musterfleet/muster/agent/drift"
	"github.com/musterfleet/muster/agent/flaps"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Status is told what is watched, and what flaps.
type Status interface {
	SetWatches(watched, polled int, reason error)
	SetFlapping(all []model.FlappingState)
}

// Options are what Repairs are made from.
type Options struct {
	Drift drift.Options
	// Listen is flaps.Options.Listen.
	Listen func(ctx context.Context, paths []string) (flaps.Writers, error)
	Status Status
	// Report reports an event of a manifest.
	Report func(key string, event model.NodeEvent, message string)
	Log    *slog.Logger
}

// Repairs are those of the manifests of a node, by their keys. Its methods are for one
// goroutine. Make it with New.
type Repairs struct {
	o       Options
	monitor *drift.Monitor
	flaps   *flaps.Flaps
	// failed are the resources that did not reach their state when they were tried last.
	failed map[string]map[model.Ref]bool
}

// New returns Repairs that follow nothing.
func New(o Options) *Repairs {
	r := &Repairs{o: o, monitor: drift.New(o.Drift), failed: map[string]map[model.Ref]bool{}}
	r.flaps = flaps.New(flaps.Options{Listen: o.Listen, Began: r.began, Ended: r.ended})

	return r
}

// Follow follows the resources of a manifest, and no others.
func (r *Repairs) Follow(key string, facts model.Facts, resources []*resource.Resource, limits model.Flapping) {
	r.monitor.Follow(key, facts, resources, limits)
	r.followed()
}

// Unfollow ends that.
func (r *Repairs) Unfollow(key string) {
	r.monitor.Remove(key)
	r.followed()
}

// followed updates what depends on what is followed.
func (r *Repairs) followed() {
	r.flaps.Retain(r.monitor.Flapping())
	r.o.Status.SetFlapping(r.flaps.States())
	r.o.Status.SetWatches(r.monitor.Watched())
}

// Forget forgets what became of the resources of a manifest.
func (r *Repairs) Forget(key string) { delete(r.failed, key) }

// Close stops following everything.
func (r *Repairs) Close() {
	r.monitor.Close()
	r.flaps.Close()
}

// Take returns what may have drifted since the last call, and tells what flaps, or does no
// longer.
func (r *Repairs) Take(now time.Time) []drift.Drift {
	for _, f := range r.monitor.Calm(now) {
		r.flaps.End(f.Key, f.Ref)
	}
	r.flaps.Look(now)
	out := r.monitor.Take(now)
	r.o.Status.SetWatches(r.monitor.Watched())

	return out
}

// Next returns when Take has something to do by itself; zero is never.
func (r *Repairs) Next() time.Time {
	a, b := r.monitor.Next(), r.flaps.Next()
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}

	return a
}

// Note takes over what came of a resource in a run. part are the resources that the run
// was about, nil for all.
func (r *Repairs) Note(ctx context.Context, key string, part []model.Ref, t *model.Transaction) {
	r.monitor.Turned(key, t.Ref())
	if t.NotRun {
		return
	}
	ref := t.Ref()
	switch {
	case t.OK():
		delete(r.failed[key], ref)
	case r.failed[key] == nil:
		r.failed[key] = map[model.Ref]bool{ref: true}
	default:
		r.failed[key][ref] = true
	}
	if t.Cause != model.CauseDrift {
		return
	}
	acted := t.Failed || t.Changed && !t.Noop
	switch now := time.Now(); {
	case acted:
		if f, began := r.monitor.Repaired(key, ref, now); began {
			r.flaps.Begin(ctx, f)
		}
	case slices.Contains(part, ref):
		r.monitor.Looked(key, ref, now)
	}
}

// Left takes over what a resource was last seen in.
func (r *Repairs) Left(key string, ref model.Ref, state resource.State) {
	if s, ok := state.(resource.Marker); ok {
		path, mark := s.Mark()
		r.monitor.Left(key, ref, path, mark)
	}
}

// Fails reports whether any resource of a manifest did not reach its state when it was
// tried last.
func (r *Repairs) Fails(key string) bool { return len(r.failed[key]) > 0 }

// Failed returns what says so of each.
func (r *Repairs) Failed(key string) func(model.Ref) bool {
	return func(ref model.Ref) bool { return r.failed[key][ref] }
}

// began tells that a resource flaps from now on.
func (r *Repairs) began(f model.FlappingState) {
	r.o.Log.Warn("resource flapping", "manifest", f.Manifest, "resource", f.Resource.String(), "writer", cmp.Or(f.Writer, "unknown"))
	r.o.Status.SetFlapping(r.flaps.States())
	r.o.Report(f.Manifest, model.NodeFlapping, flaps.Text(f))
}

// ended tells that a resource flaps no more.
func (r *Repairs) ended(f model.FlappingState) {
	r.o.Log.Info("resource no longer flapping", "manifest", f.Manifest, "resource", f.Resource.String())
	r.o.Status.SetFlapping(r.flaps.States())
	r.o.Report(f.Manifest, model.NodeFlapping, f.Resource.String()+" of "+f.Manifest+" is left alone now: it is repaired at once again")
}
