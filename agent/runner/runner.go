package runner

import (
	"context"
	"log/slog"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Shown is what administrators are shown of runs; *status.Runs is one. Its methods may be
// called from several goroutines.
type Shown interface {
	// Begin notes that a run is in progress until end.
	Begin(run model.RunningRun) (end func())
	// Wait notes what the run with an id waits for, empty for nothing: then it begins.
	Wait(id, blocker string)
}

// Options are what a Runner is made from.
type Options struct {
	Node, Version string
	Host          *host.Host
	// Checker makes health checks; without it they are unknown.
	Checker engine.Checker
	// Origin returns what the resources of a manifest may ask of it when they run; it is
	// called with nil for those of no manifest.
	Origin func(*manifest.Resolved) resource.Origin
	// Facts returns the facts as they are known.
	Facts func() model.Facts
	Shown Shown
	// Ran is notified after each run.
	Ran tasks.Signal
	Log *slog.Logger
}

// Runner makes single runs on the node, and knows when one last changed something. Make it
// with New.
type Runner struct {
	o       Options
	running *Running
	// changes counts how often a run changed the machine, or may have, changedAt is when
	// that, or NoteChange, was last. Whoever touches either holds the turn.
	changes   int
	changedAt time.Time
}

// New returns a Runner whose runs are among those in progress.
func New(o Options, running *Running) *Runner { return &Runner{o: o, running: running} }

// Changes returns how often a run changed the machine, or may have. The turn is held.
func (r *Runner) Changes() int { return r.changes }

// ChangedAt returns when a run last changed something, or NoteChange was called; in the
// future where a run goes on then. The turn is held.
func (r *Runner) ChangedAt() time.Time { return r.changedAt }

// NoteChange notes that the desired state of the node changed at a time. The turn is held.
func (r *Runner) NoteChange(at time.Time) { r.changedAt = at }

// Run makes a run in its lane. ctx ends when no further change may begin.
// The run is nil when it did not come to its end. The turn is not held.
func (r *Runner) Run(ctx context.Context, lane *Lane, g *graph.Graph, o engine.ReconcileOptions) (run *model.Run, err error) {
	defer r.o.Ran.Notify()
	o.Command, o.Seq = "muster agent", lane.Turn
	defer r.o.Shown.Begin(model.RunningRun{RunID: o.Identity.RunID, Manifest: o.Manifest, Cause: o.Cause, Part: lane.Part, Started: time.Now().UTC()})()
	err = tasks.Guard(r.o.Log, "running "+o.Manifest, func() (err error) {
		run, err = engine.Reconcile(ctx, g, o)
		return err
	})
	r.running.Lock()
	defer r.running.Unlock()
	if run != nil && (run.Counts.Made() > 0 || run.Counts.Refreshed > 0) {
		r.changedAt = model.LaterTime(r.changedAt, time.Now())
	}
	if run != nil {
		r.changedAt = model.LaterTime(r.changedAt, run.RetryAt) // when it goes on
	}
	if !o.Env.Scope.ReadOnly() && (run == nil || run.Outcome() != model.OutcomeStable) {
		r.changes++
	}

	return run, err
}

// Holds reports whether a prepared graph may still run. The turn is held.
type Holds func() bool

// Await waits until the run with an id may begin, and returns its graph. prepare returns the graph;
// it may take long and does not hold the turn. It is called again after the run waited for others,
// which may have changed its inputs, and when its graph holds no longer. begun is called when the
// run begins, with the turn held. The error is the error of prepare, or the cause of the end of ctx.
func (r *Runner) Await(ctx context.Context, id string, lane *Lane, prepare func() (*graph.Graph, Holds, error), begun func(*graph.Graph)) (*graph.Graph, error) {
	waits := func(blocker *Lane) { r.o.Shown.Wait(id, blocker.String()) }

	return r.running.await(ctx, lane, prepare, waits, func(g *graph.Graph) {
		r.o.Shown.Wait(id, "")
		begun(g)
	})
}

// Options returns those that all runs have in common. hard ends when the change in
// hand is broken off.
func (r *Runner) Options(hard context.Context, id string, noop bool) engine.ReconcileOptions {
	return engine.ReconcileOptions{Options: engine.Options{
		Env:      r.Env(r.o.Facts(), noop),
		Checker:  r.o.Checker,
		Identity: engine.Identity{Node: r.o.Node, Version: r.o.Version, RunID: id},
		Grace: func(work context.Context) error {
			select {
			case <-hard.Done():
				return context.Cause(hard)
			case <-work.Done():
				return nil
			}
		},
	}}
}

// Env returns that of resources of no manifest.
func (r *Runner) Env(facts model.Facts, noop bool) resource.Env {
	return resource.Env{Host: r.o.Host, Facts: facts, Log: r.o.Log, Scope: resource.Scope{Noop: noop, Origin: r.o.Origin(nil)}}
}

// Origin returns what the resources of a manifest may ask of it when they run.
func (r *Runner) Origin(of *manifest.Resolved) resource.Origin { return r.o.Origin(of) }

// Unmade returns the summary of a run of an entry that did not come about.
func (r *Runner) Unmade(e model.Entry, digest string, cause model.Cause) *model.Run {
	return &model.Run{
		Protocol: model.ProtocolRun, RunID: ksuid.New().String(), Node: r.o.Node, Manifest: e.Key, Revision: e.Revision,
		Digest: digest, Cause: cause, Started: time.Now().UTC(), Version: r.o.Version,
	}
}
