package drift

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Status is told what is watched, and what flaps.
type Status interface {
	SetWatches(watched, polled int, reason error)
	SetFlapping(all []model.FlappingState)
}

// Options are what Repairs are made from.
type RepairOptions struct {
	// Drift are those of what is followed; New sets Flapping and Calm.
	Drift  Options
	Status Status
	// Report reports an event of a manifest.
	Report func(key string, event model.NodeEvent, message string)
	Log    *slog.Logger
}

// Repairs are those of the manifests of a node, by their keys. Its methods are for one
// goroutine. Make it with New.
type Repairs struct {
	o       RepairOptions
	monitor *Monitor
}

// New returns Repairs that follow nothing.
func NewRepairs(o RepairOptions) *Repairs {
	r := &Repairs{o: o}
	o.Drift.Flapping, o.Drift.Calm = r.began, r.ended
	r.monitor = New(o.Drift)

	return r
}

// Follow follows the resources of a manifest, and no others.
func (r *Repairs) Follow(key string, manifest Manifest) {
	r.monitor.Follow(key, manifest)
	r.followed()
}

// Unfollow ends that.
func (r *Repairs) Unfollow(key string) {
	r.monitor.Remove(key)
	r.followed()
}

// followed updates what depends on what is followed.
func (r *Repairs) followed() {
	r.o.Status.SetFlapping(r.monitor.Flapping())
	r.o.Status.SetWatches(r.monitor.Watched())
}

// Close stops following everything.
func (r *Repairs) Close() { r.monitor.Close() }

// Take returns what may have drifted since the last call, and tells what flaps, or does no
// longer.
func (r *Repairs) Take(now time.Time) []Drift {
	out := r.monitor.Take(now)
	r.o.Status.SetWatches(r.monitor.Watched())

	return out
}

// Next returns when Take has something to do by itself; zero is never.
func (r *Repairs) Next() time.Time { return r.monitor.Next() }

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
		r.monitor.Reached(key, ref)
	case t.Failed && !t.Noop:
		r.monitor.Failed(key, ref, time.Now())
	}
	if t.Cause != model.CauseDrift {
		return
	}
	acted := t.Failed || t.Changed && !t.Noop
	switch now := time.Now(); {
	case acted:
		r.monitor.Repaired(ctx, key, ref, now)
	case slices.Contains(part, ref):
		r.monitor.NothingDue(key, ref, now)
	}
}

// PutOff notes that a limit puts off until a time what is due of a resource, seen to have
// drifted at another; zero is that nobody noticed drift.
func (r *Repairs) PutOff(key string, ref model.Ref, seen, until time.Time) {
	r.monitor.PutOff(key, ref, seen, until)
}

// DriftSince returns when drift of a resource was first noticed that is not repaired yet; zero for
// none.
func (r *Repairs) DriftSince(key string, ref model.Ref) time.Time {
	return r.monitor.DriftSince(key, ref)
}

// Left takes over what a resource was last seen in.
func (r *Repairs) Left(key string, ref model.Ref, state resource.State) {
	if s, ok := state.(resource.Marker); ok {
		path, mark := s.Mark()
		r.monitor.Left(key, ref, path, mark)
	}
}

// began tells that a resource flaps from now on.
func (r *Repairs) began(f model.FlappingState) {
	r.o.Log.Warn("resource flapping", "manifest", f.Manifest, "resource", f.Resource.String(), "writer", cmp.Or(f.Writer, "unknown"))
	r.o.Status.SetFlapping(r.monitor.Flapping())
	r.o.Report(f.Manifest, model.NodeFlapping, flappingText(f))
}

// ended tells that a resource flaps no more.
func (r *Repairs) ended(f model.FlappingState) {
	r.o.Log.Info("resource no longer flapping", "manifest", f.Manifest, "resource", f.Resource.String())
	r.o.Status.SetFlapping(r.monitor.Flapping())
	r.o.Report(f.Manifest, model.NodeFlapping, f.Resource.String()+" of "+f.Manifest+" no longer flaps; the agent repairs it immediately again")
}

// flappingText returns the message about a resource that flaps.
func flappingText(f model.FlappingState) string {
	who := "keeps being changed by an unknown program"
	switch {
	case f.Writer != "":
		who = "keeps being changed, probably by " + f.Writer
	case f.Unit != "":
		who = "keeps stopping: a program stops it, or it exits (see journalctl --unit=" + f.Unit + ")"
	}

	return fmt.Sprintf("%s of %s %s; the agent delays its repairs more and more until this ends", f.Resource, f.Manifest, who)
}
