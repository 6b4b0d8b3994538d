// Package runner runs the active manifests of a node. Manifests follows the assignments, starts the
// runs and health check passes that are due, and records their results. Runner makes one run, Lanes
// decides which runs work at the same time, Schedule decides which manifest runs next, and Registrar
// registers services.
package runner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Options configure a Runner.
type Options struct {
	Node, Version string
	Host          *host.Host
	// Checker makes health checks. Without it their status is unknown.
	Checker engine.Checker
	// Origin returns what the resources of a manifest may request of it during a run. Its argument is
	// nil for resources of no manifest.
	Origin func(*manifest.Resolved) resource.Origin
	Facts  func() model.Facts
	Shown  *status.Runs
	Ran    tasks.Signal
	Log    *slog.Logger
}

// Runner makes single runs on the node and remembers when a run last changed something.
type Runner struct {
	o       Options
	running *Running
	// Changes counts the runs that changed the machine, or may have. ChangedAt is the time of the last
	// change of the machine or the desired state. It is in the future if a limit delays a run until then.
	// The lock of running guards both.
	Changes   int
	ChangedAt time.Time
}

// New returns a Runner. Its runs are part of running.
func New(o Options, running *Running) *Runner { return &Runner{o: o, running: running} }

// Attempt is an attempt to begin a run.
type Attempt struct {
	Graph   *plan.Graph
	Options engine.Options
	// Blocked is closed when the run that blocks this one may have ended; nil means that this run began.
	Blocked <-chan struct{}
	// Began is called after the run began, without the lock. An error ends the run. Nil does nothing.
	Began func() error
}

// Begin prepares a run, and begins it unless another run blocks it. It may take long. o.Waited reports
// that another process delayed the run. Runner.Run calls it again after a wait for another run, which may
// have changed the inputs.
type Begin func(ctx context.Context, o engine.ReconcileOptions) (Attempt, error)

// Run makes a run in its lane. No change begins after ctx ends. The run is nil if it did not complete.
// The caller does not hold the lock.
func (r *Runner) Run(ctx context.Context, lane *Lane, o engine.ReconcileOptions, begin Begin) (run *model.Run, err error) {
	defer r.o.Ran.Notify()
	o.Command, o.Seq = "muster agent", lane.Turn
	o.Locked = func(ctx context.Context, o engine.ReconcileOptions) (*plan.Graph, engine.Options, error) {
		return r.await(ctx, lane, o, begin)
	}
	defer r.o.Shown.Begin(model.RunningRun{RunID: o.Identity.RunID, Manifest: o.Manifest, Cause: o.Cause, Part: lane.Part, Started: time.Now().UTC()})()
	err = tasks.Guard(r.o.Log, "running "+o.Manifest, func() (err error) {
		run, err = engine.Reconcile(ctx, nil, o)
		return err
	})
	r.running.Lock()
	defer r.running.Unlock()
	if run != nil && (run.Counts.Made() > 0 || run.Counts.Refreshed > 0) {
		r.ChangedAt = model.LaterTime(r.ChangedAt, time.Now())
	}
	if run != nil {
		r.ChangedAt = model.LaterTime(r.ChangedAt, run.RetryAt)
	}
	if !o.Env.Scope.ReadOnly() && (run == nil || run.Outcome() != model.OutcomeStable) {
		r.Changes++
	}

	return run, err
}

// await begins a run when no other run blocks it. It returns the error of begin or Began, or the cause of
// the end of ctx.
func (r *Runner) await(ctx context.Context, lane *Lane, o engine.ReconcileOptions, begin Begin) (*plan.Graph, engine.Options, error) {
	for {
		a, err := begin(ctx, o)
		if err == nil && a.Blocked == nil {
			if err = context.Cause(ctx); err == nil && a.Began != nil {
				err = a.Began()
			}
		}
		if err != nil || a.Blocked == nil {
			return a.Graph, a.Options, err
		}
		for blocked := a.Blocked; blocked != nil; blocked = r.running.blocked(lane) {
			select {
			case <-blocked:
			case <-ctx.Done():
				return nil, o.Options, context.Cause(ctx)
			}
		}
		o.Waited = false
	}
}

// Enter begins a run of a graph unless another run blocks it. The returned channel is closed when that run
// may have ended. The caller holds the lock.
func (r *Runner) Enter(lane *Lane, id string, g *plan.Graph) (blocked <-chan struct{}) {
	blocker := lane.Begin(g)
	if blocker == nil {
		r.o.Shown.Wait(id, "")
		return nil
	}
	r.o.Shown.Wait(id, blocker.String())

	return r.running.Lanes.Changed()
}

// Options returns the options that all runs share. hard ends when the current change must stop.
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

// Env returns the environment of resources of no manifest.
func (r *Runner) Env(facts model.Facts, noop bool) resource.Env {
	return resource.Env{Host: r.o.Host, Facts: facts, Log: r.o.Log, Scope: resource.Scope{Noop: noop, Origin: r.o.Origin(nil)}}
}

// Unmade returns the summary of a run that did not begin.
func (r *Runner) Unmade(e model.Entry, digest string, cause model.Cause) *model.Run {
	return &model.Run{
		Protocol: model.ProtocolRun, RunID: ksuid.New().String(), Node: r.o.Node, Manifest: e.Key, Revision: e.Revision,
		Digest: digest, Cause: cause, Started: time.Now().UTC(), Version: r.o.Version,
	}
}

// Running holds the runs in progress and the lock of the agent's state. Each run has a goroutine. Runs
// and the agent loop hold the lock only to read and write shared state, never while they wait for NATS,
// templates or the disk.
type Running struct {
	// Lanes decides which runs may work at the same time. The lock guards it.
	Lanes *Lanes
	// lock is a channel and not a mutex, so that tests with synctest can wait for it.
	lock chan struct{}
	// after holds the functions to call after Unlock.
	after []func()
	all   sync.WaitGroup
	// ended is notified after each run.
	ended tasks.Signal
}

// NewRunning returns a Running without runs. It notifies ended after each run.
func NewRunning(ended tasks.Signal) *Running {
	return &Running{Lanes: NewLanes(), lock: make(chan struct{}, 1), ended: ended}
}

// Lock locks the agent's state.
func (r *Running) Lock() { r.lock <- struct{}{} }

// Unlock unlocks the agent's state. Then it calls the functions of After in order.
func (r *Running) Unlock() {
	after := r.after
	r.after = nil
	<-r.lock
	for _, f := range after {
		f()
	}
}

// After calls f after the next Unlock, in the same goroutine. Use it for disk work. The caller holds the
// lock.
func (r *Running) After(f func()) { r.after = append(r.after, f) }

// Do calls f with the lock.
func (r *Running) Do(f func()) {
	r.Lock()
	defer r.Unlock()
	f()
}

// Begin starts a run in a goroutine, behind the runs that began before. It starts after the functions of
// After, so that the report of its cause precedes its own reports. part lists its resources; nil is a full
// run. The caller holds the lock.
func (r *Running) Begin(kind Kind, key string, part []model.Ref, run func(*Lane)) {
	lane := r.Lanes.Enter(kind, key, time.Now())
	lane.Part = part
	begin := make(chan struct{})
	r.After(func() { close(begin) })
	r.all.Go(func() {
		defer func() {
			r.Do(lane.Leave)
			r.ended.Notify()
		}()
		<-begin
		run(lane)
	})
}

// IsEmpty reports whether no run is in progress. The caller holds the lock.
func (r *Running) IsEmpty() bool {
	return r.Lanes.Len(Manifest)+r.Lanes.Len(Part)+r.Lanes.Len(Request) == 0
}

// Wait waits until all runs have ended. No run may begin during the wait.
func (r *Running) Wait() { r.all.Wait() }

// blocked returns nil if no run blocks a run, and otherwise a channel that is closed when that may have
// changed.
func (r *Running) blocked(lane *Lane) <-chan struct{} {
	r.Lock()
	defer r.Unlock()
	if lane.Blocker() == nil {
		return nil
	}

	return r.Lanes.Changed()
}
