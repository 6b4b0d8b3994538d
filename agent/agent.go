package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/outbox"
	"github.com/musterfleet/muster/agent/registrar"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Options are what an agent is made from. BundleSource, Origin and Facts may
// be left out.
type Options struct {
	Config  Config
	Version string
	// Host has Config.StateDir as its state directory.
	Host   *host.Host
	Loader Loader
	// Origin gives what the resources of a manifest may ask of it when they run; nil
	// stands for the manifest of an ensure request.
	Origin      func(*manifest.Resolved) resource.Origin
	Assignments Assignments
	Bundles     BundleSource
	Publisher   Publisher
	States      StateStore
	// Registry announces services to others; without it nothing registers.
	Registry registrar.Registry
	// Checker makes health checks; without it they are unknown.
	Checker engine.Checker
	// Facts gathers the facts, with those of a directory. What could not be
	// gathered is in the errors.
	Facts func(ctx context.Context, dir string) (model.Facts, []error)
	// StableFacts gives the digest of what does not move by itself in facts: when
	// it changes they are published.
	StableFacts func(model.Facts) string
	Log         *slog.Logger
}

// Agent is a node. Make it with New, and run it once. Its other methods may be
// called from several goroutines while it runs.
type Agent struct {
	opts      Options
	log       *slog.Logger
	started   time.Time
	outbox    *outbox.Outbox
	store     *store
	bundles   *bundles
	requests  *requests.Service
	queue     *queue
	facts     factBox
	node      nodeBox
	registrar *registrar.Registrar
	// said wakes who hands over the node's state.
	said    tasks.Signal
	reached reached
	runner  runner

	mu     sync.Mutex
	config Config
}

// reached wakes those who talk to NATS when it can be reached again.
type reached struct{ deliver, tell, watch tasks.Signal }

// New opens what the agent has on disk. The error says what of the state
// directory cannot be used, or wraps outbox.ErrInUse when another agent has it.
func New(ctx context.Context, o Options) (*Agent, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := o.Config.Validate().Err(); err != nil {
		return nil, err
	}
	a := &Agent{opts: o, log: o.Log, config: o.Config, started: time.Now().UTC(), queue: newQueue(), said: tasks.NewSignal()}
	a.reached = reached{deliver: tasks.NewSignal(), tell: tasks.NewSignal(), watch: tasks.NewSignal()}
	a.node.manifests, a.node.health = map[string]model.ManifestState{}, map[string]model.HealthCounts{}
	a.registrar = registrar.New(o.Config.Node, o.Registry, o.Log)
	a.facts.ready = make(chan struct{})
	a.runner = runner{Agent: a, units: map[string]*unit{}, pace: 1 + tasks.Jitter*(2*rand.Float64()-1)}
	if err := a.open(ctx); err != nil {
		return nil, fmt.Errorf("state directory %s: %w", o.Config.StateDir, err)
	}

	return a, nil
}

func (a *Agent) open(ctx context.Context) (err error) {
	dir := a.config.StateDir
	if err := makeOwnDir(a.opts.Host, dir); err != nil {
		return err
	}
	a.outbox, err = outbox.Open(outbox.Options{Dir: filepath.Join(dir, "outbox"), MaxBytes: int64(a.config.OutboxMaxBytes), Dropped: a.droppedReport, Log: a.log})
	if err != nil {
		return err
	}
	if a.store, err = newStore(a.opts.Host, dir, a.log); err == nil {
		err = a.runner.recall()
	}
	if err == nil {
		a.requests, err = requests.Open(ctx, a.requestOptions(filepath.Join(dir, "requests")))
	}
	if err != nil {
		return errors.Join(err, a.outbox.Close())
	}
	a.bundles = &bundles{host: a.opts.Host, source: a.opts.Bundles, dir: filepath.Join(dir, "bundles")}

	return nil
}

// Config gives the configuration in force.
func (a *Agent) Config() Config {
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.config
}

// Run is the agent until ctx ends: then the change in hand is finished, for at
// most the shutdown timeout or until hard ends, and what is left to say is
// handed over if that is possible. The end of hard is the end of ctx too. Run
// returns when everything it started has ended.
func (a *Agent) Run(ctx, hard context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(hard, end)()
	// What must still be done while stopping has a context that outlives both.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	work, kill := context.WithCancelCause(hard)
	defer kill(nil)
	var all sync.WaitGroup
	all.Go(func() { a.killLate(ctx, work, kill) })
	all.Go(func() { tasks.Repeat(ctx, a.log, "watching assignments", a.reached.watch, a.watch) })
	all.Go(func() { tasks.Repeat(background, a.log, "handing over reports", a.reached.deliver, a.deliver) })
	all.Go(func() { tasks.Repeat(background, a.log, "publishing the node's state", a.reached.tell, a.tell) })
	all.Go(func() { tasks.Repeat(ctx, a.log, "gathering facts", nil, a.gather) })

	all.Go(func() { tasks.Repeat(ctx, a.log, "registering services", nil, a.registrar.Run) })
	a.log.InfoContext(ctx, "agent started", "node", a.config.Node, "version", a.opts.Version, "state_dir", a.config.StateDir, "reports", a.outbox.Len())
	a.reportNode(model.NodeStarted, "")
	a.sync()
	a.runner.work(ctx, work)
	kill(nil)
	a.reportNode(model.NodeStopped, "")
	a.sync()
	stop()
	all.Wait()
	a.farewell(context.WithoutCancel(ctx))
	a.log.InfoContext(ctx, "agent stopped", "reports", a.outbox.Len())

	return a.outbox.Close()
}

// killLate breaks the work off when it goes on for too long after ctx ended.
func (a *Agent) killLate(ctx, work context.Context, kill context.CancelCauseFunc) {
	<-ctx.Done()
	timeout := a.Config().ShutdownTimeout.Std()
	a.log.InfoContext(ctx, "told to stop, the change in hand is finished first", "timeout", timeout)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		kill(fmt.Errorf("the agent was told to stop %s ago", timeout))
	case <-work.Done():
	}
}

// watch keeps the assignments current.
func (a *Agent) watch(ctx context.Context) error {
	err := a.opts.Assignments.Run(ctx, func([]string) { a.queue.assignmentsChanged() })
	if err == nil {
		err = errors.New("it ended by itself")
	}

	return err
}

// Connected says that NATS can be reached again: what waits for that is tried
// at once.
func (a *Agent) Connected() {
	a.reached.deliver.Notify()
	a.reached.tell.Notify()
	a.reached.watch.Notify()
	a.registrar.RenewAll()
	a.queue.retryNow()
}

// sync makes reports durable. What goes wrong is logged: they stay in memory.
func (a *Agent) sync() {
	if err := a.outbox.Sync(); err != nil {
		a.log.Error("reports are not on disk", "error", err)
	}
}
