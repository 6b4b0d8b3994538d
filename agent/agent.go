// Package agent runs a node. It wakes when assignments change or an interval ends, runs manifests and
// reports. Assignments and reports are on disk, so it needs no connection to enforce the desired state, and
// loses no report.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/drift"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Options configure an agent. Watch, Writers, Checker, Away and Clock are optional, and so is
// Connection if Config serves no metrics.
type Options struct {
	Config  Config
	Version string
	// Host has Config.StateDir as its state directory.
	Host        *host.Host
	Loader      Loader
	Assignments Assignments
	// Control watches pauses, labels and groups of the node. It is optional.
	Control Watched
	// GroupsChanged is called after operators change the groups of the node, which Config returns.
	// It is optional and must not block.
	GroupsChanged func()
	// Supervisor answers on the socket and informs systemd while the agent runs. It is optional.
	Supervisor *Supervisor
	Bundles    desired.BundleSource
	Publisher  Publisher
	States     status.Store
	Registry   runner.Registry
	// Watch watches a point of the machine, see drift.Options.Arm. Without it the agent detects
	// drift at intervals.
	Watch func(p watch.Point, wake func()) (watch.Watch, error)
	// Writers finds the processes that write files, see drift.Options.Listen.
	Writers func(ctx context.Context, paths []string) (drift.Writers, error)
	// Checker runs health checks. Without it their result is unknown.
	Checker engine.Checker
	// Facts gathers the facts of the machine and of a directory. stable is the digest of the facts
	// that change rarely; the agent publishes the facts when it changes. failed are the errors of
	// facts that could not be gathered.
	Facts func(ctx context.Context, dir string) (facts model.Facts, stable string, failed []error)
	// Packages reads the installed packages. Without it the agent stores no inventory.
	Packages     status.Source
	PutInventory func(ctx context.Context, i model.Inventory) error
	// Connection reports whether NATS is reachable, and returns the last time at which it was;
	// zero means never.
	Connection func() (connected bool, last time.Time)
	// Away returns why NATS is unreachable and the remedy, or an empty text while it is reachable.
	Away func() string
	// Clock is the clock of the machine by default.
	Clock *status.Clock
	Goal  status.Goal
	Log   *slog.Logger
}

// Agent is the agent of a node. New returns one. Call Run once; the other methods may be called
// from several goroutines while it runs.
type Agent struct {
	config    *settings
	host      *host.Host
	watch     Assignments
	operators *operators
	outbox    *reporting.Outbox
	report    *reporting.Reporter
	status    *status.Node
	runs      *status.Runs
	facts     *factCache
	registrar *runner.Registrar
	delivery  *reporting.Delivery
	heartbeat *status.Heartbeat
	loop      *loop
	previews  *requests.Previews
	// packages publishes the inventory; nil without Options.Packages.
	packages *status.Publisher
	// metrics is nil if the agent serves none.
	metrics *status.Server
	// reconnected wakes the watch after a reconnect.
	reconnected tasks.Signal
	ran         tasks.Signal
	supervisor  *Supervisor
	log         *slog.Logger
}

// New opens the state directory and listens at the address of the metrics. The error wraps
// reporting.ErrInUse when another agent uses the directory.
func New(ctx context.Context, o Options) (*Agent, error) {
	if err := o.Config.Validate().Err(); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = status.System()
	}
	if o.Away == nil {
		o.Away = func() string { return "" }
	}
	if o.GroupsChanged == nil {
		o.GroupsChanged = func() {}
	}
	config := &settings{config: o.Config}
	a := &Agent{
		config: config, host: o.Host, watch: o.Assignments, runs: status.NewRuns(), supervisor: o.Supervisor, log: o.Log, reconnected: tasks.NewSignal(), ran: tasks.NewSignal(),
		facts:     &factCache{gather: o.Facts, ready: make(chan struct{}), log: o.Log},
		registrar: runner.NewRegistrar(o.Config.Node, o.Registry, o.Log),
	}
	if o.Packages != nil {
		a.packages = &status.Publisher{
			Node: o.Config.Node, Source: o.Packages, Arm: o.Watch, Put: o.PutInventory, Log: o.Log,
			Off: func() bool { return config.get().Inventory == "off" },
		}
	}
	a.facts.changed = func() {
		a.status.Changed.Notify()
		a.loop.wakes.assignmentsChanged()
	}
	maxState := func() int { return bounds.MaxState(o.States.MaxMessage()) }
	a.status = status.New(o.Version, config.get, func() int { return a.outbox.Len() }, maxState, o.Clock)
	if err := a.open(ctx, o); err != nil {
		return nil, fmt.Errorf("state directory %s: %w", o.Config.StateDir, err)
	}
	if err := a.listenForScrapes(ctx, o); err != nil {
		return nil, errors.Join(err, a.outbox.Close())
	}

	return a, nil
}

func maxDocument(p interface{ MaxMessage() int64 }) func() int {
	return func() int { return bounds.MaxDocument(p.MaxMessage()) }
}

func (a *Agent) open(ctx context.Context, o Options) (err error) {
	dir := o.Config.StateDir
	o.Host.KeepLitter()
	if err := o.Host.MakeDirectory(dir, files.OwnAttrs(0o700)); err != nil {
		return err
	}
	if err := o.Host.OpenState(false); err != nil {
		return err
	}
	a.report = reporting.NewReporter(reporting.ReporterOptions{State: a.status.State, MaxDocument: maxDocument(o.Publisher), Log: a.log})
	a.outbox, err = reporting.OpenOutbox(reporting.OutboxOptions{
		Dir: filepath.Join(dir, "outbox"), MaxBytes: int64(o.Config.OutboxMaxBytes), Log: a.log,
		Dropped: func(lost reporting.Lost) model.Report { return a.report.Dropped(a.status.Identity(), lost) },
	})
	if err != nil {
		return err
	}
	// The format is written after the outbox opened, so that another version can still use it if that failed.
	if err := o.Host.OpenState(true); err != nil {
		return errors.Join(err, a.outbox.Close())
	}
	// This agent holds the outbox, and no run writes to these directories yet.
	o.Host.CleanTemp(ctx, ".", "assignments", "requests")
	a.report.Outbox = a.outbox
	a.delivery = &reporting.Delivery{
		Outbox: a.outbox, Publisher: o.Publisher, Node: o.Config.Node, MaxBatch: maxDocument(o.Publisher),
		Connected: tasks.NewSignal(), Drained: tasks.NewSignal(), Log: a.log,
		Failed: func(err error) { a.status.SetUnstored(model.UnstoredReports, err) },
	}
	a.heartbeat = &status.Heartbeat{
		Store: o.States, Node: a.status, Connected: tasks.NewSignal(), Drained: a.delivery.Drained, Log: a.log,
		Inspect: a.inspect(dir),
		Clock:   o.Clock, ClockMoved: func() {
			a.loop.wakes.assignmentsChanged()
			a.operators.control.Wake()
		},
		Facts:     func() (model.Facts, string) { f := a.facts.now(); return f.Values, f.Stable },
		Duplicate: func(message string) { a.report.Node("", model.NodeDuplicate, message) },
	}
	if err := a.makeLoop(ctx, o); err != nil {
		return errors.Join(err, a.outbox.Close())
	}

	return nil
}

// inspect returns the function that each heartbeat calls. It shows that the state directory was removed or
// replaced.
func (a *Agent) inspect(dir string) func() {
	before, err := os.Stat(dir)

	return func() {
		if err == nil {
			problem := ""
			if now, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(before, now) {
				problem = "the state directory " + dir + " was removed or replaced, so no state is stored: restart the agent"
			}
			a.status.SetDirectory(problem)
		}
		if a.supervisor != nil {
			a.supervisor.heartbeats.Notify()
		}
	}
}

func (a *Agent) makeLoop(ctx context.Context, o Options) error {
	dir := o.Config.StateDir
	trust, err := desired.OpenGate(desired.GateOptions{Host: o.Host, Path: filepath.Join(dir, "trust.json"), Policy: a.config.policy, Times: o.Clock.Times})
	if err != nil {
		return err
	}
	wakes := newWakes()
	if err := a.openControl(o, trust, wakes); err != nil {
		return err
	}
	set, err := desired.OpenSet(desired.SetOptions{
		Host: o.Host, Dir: dir, Source: o.Assignments, Gate: trust, Clock: o.Clock, Loader: o.Loader, Log: a.log,
		Bundles: o.Bundles, Arrived: wakes.assignmentsChanged,
	})
	if err != nil {
		return err
	}
	a.status.SetAssignments(set.View().States())
	running := runner.NewRunning(wakes.signal)
	single := runner.New(runner.Options{
		Node: o.Config.Node, Version: o.Version, Host: o.Host, Checker: o.Checker, Origin: o.Loader.Origin,
		Facts: a.facts.values, Shown: a.runs, Ran: a.ran, Log: a.log,
	}, running)
	m := runner.NewManifests(runner.ManifestsOptions{
		Host: o.Host, Config: a.config.get, Facts: a.facts.now, RenewFacts: func(ctx context.Context) { a.facts.renew(ctx, a.Config().FactsDir) },
		Set: set, Running: running, Runner: single, Registrar: a.registrar, Report: a.report, Status: a.status,
		Drift: drift.Options{Arm: o.Watch, Look: o.Host.Look, Wake: wakes.signal.Notify, Listen: o.Writers, Log: a.log},
		Wake:  wakes.signal.Notify, Log: a.log,
	})
	service, err := requests.Open(ctx, requests.Options{
		Node: o.Config.Node, Host: o.Host, Dir: filepath.Join(dir, "requests"), Loader: o.Loader, Log: a.log,
		Facts: a.facts.wait, FactsNow: a.facts.values, Report: a.report.Ensure, Wake: wakes.signal.Notify,
		Open: a.config.opener(trust), Demands: trust.Demands, Untrusted: (&untrusted{report: a.report, log: a.log}).note,
		Inputs: func(facts model.Facts) manifest.Inputs {
			return manifest.Inputs{Facts: facts, MaxDepth: a.config.get().MaxDepth}
		},
		Env:     func(facts model.Facts) resource.Env { return single.Env(facts, true) },
		Expired: func(at time.Time) error { return o.Clock.Expired(at, trust.Demands()) },
		Paused: func() string {
			if pause := a.operators.control.Paused(); pause != nil {
				return pause.String()
			}
			return ""
		},
	})
	a.previews = a.newPreviews(o, trust)
	a.loop = &loop{
		set: set, manifests: m, running: running, runner: single, requests: service, facts: a.facts.wait,
		watch: o.Assignments, control: a.operators.control, bucket: bucketNotices{status: a.status, report: a.report, log: a.log}, wakes: wakes,
		started: make(chan struct{}), goal: o.Goal, log: a.log,
		unconverged: func(keys []string, known model.Sync) []string {
			found := a.Describe()
			found.Notices = a.status.Wrong()

			return status.Unconverged(found, keys, known, o.Away())
		},
	}

	return err
}

// Requests returns the service that answers requests while the agent runs.
func (a *Agent) Requests() *requests.Service { return a.loop.requests }

// Previews returns the service that answers previews while the agent runs.
func (a *Agent) Previews() *requests.Previews { return a.previews }

// Config returns the active configuration.
func (a *Agent) Config() Config { return a.config.get() }

// State returns the state of the node for the answer to a request.
func (a *Agent) State() model.NodeState { return a.status.Answer() }

// Describe returns the status of the agent. It does not wait for a run.
func (a *Agent) Describe() model.AgentStatus {
	c := a.Config()
	out := model.AgentStatus{Protocol: model.ProtocolAgent, PID: os.Getpid(), StateDir: c.StateDir, At: time.Now().UTC()}
	a.status.Describe(&out)
	a.runs.Describe(&out)

	return out
}

// Facts returns the latest facts. It waits until they were gathered once.
func (a *Agent) Facts(ctx context.Context) (model.Facts, error) { return a.facts.wait(ctx) }

// Run runs the agent until ctx ends or the Goal is reached. After ctx ends it finishes the current
// change, for at most the shutdown timeout or until hard ends, and publishes waiting reports if NATS
// is reachable. The end of hard ends ctx as well. Run waits for every goroutine that it started. It ends
// with an error if another agent took the state directory. The error wraps status.ErrUnconverged when an
// agent with a Goal has not converged.
func (a *Agent) Run(ctx, hard context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(hard, end)()
	// Reports and the state are still written after ctx and hard ended.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	work, kill := context.WithCancelCause(hard)
	defer kill(nil)
	last := a.loop.set.Memory()
	unsupervise := a.supervise(ctx, end)
	var all sync.WaitGroup
	all.Go(func() { a.killLate(ctx, work, kill) })
	all.Go(func() {
		<-ctx.Done()
		a.host.EndWaiters(work, command.OwnUnit("/"))
	})
	all.Go(func() {
		tasks.Repeat(ctx, a.log, "watching assignments", a.reconnected, func(ctx context.Context) error {
			return a.watch.Run(ctx, last, func([]string) { a.loop.wakes.assignmentsChanged() })
		})
	})
	a.operators.follow(ctx, &all)
	all.Go(func() { tasks.Repeat(background, a.log, "syncing reports", nil, a.outbox.Run) })
	all.Go(func() { tasks.Repeat(background, a.log, "publishing reports", a.delivery.Connected, a.delivery.Run) })
	all.Go(func() { tasks.Repeat(background, a.log, "storing node state", a.heartbeat.Connected, a.heartbeat.Run) })
	all.Go(func() {
		tasks.Repeat(ctx, a.log, "gathering facts", nil, func(ctx context.Context) error { return a.facts.run(ctx, a.config) })
	})
	all.Go(func() { tasks.Repeat(ctx, a.log, "registering services", nil, a.registrar.Run) })
	all.Go(func() { tasks.Repeat(ctx, a.log, "answering previews", nil, a.previews.Run) })
	all.Go(func() { freeMemoryWhenIdle(ctx, a.ran, debug.FreeOSMemory) })
	if a.packages != nil {
		all.Go(func() { tasks.Repeat(ctx, a.log, "publishing packages", nil, a.packages.Run) })
	}
	if a.metrics != nil {
		all.Go(func() { a.metrics.Run(ctx) })
	}
	a.log.InfoContext(ctx, "agent started", "node", a.Config().Node, "version", a.State().Version, "state_dir", a.Config().StateDir, "reports", a.outbox.Len())
	a.config.warnUnsignable(ctx, a.log)
	a.report.Node("", model.NodeStarted, "")
	a.reportUpgrade(ctx)
	a.loop.run(ctx, work)
	end()
	kill(nil)
	a.report.Node("", model.NodeStopped, "")
	stop()
	all.Wait()
	a.delivery.Flush(context.WithoutCancel(ctx), a.heartbeat.Stop)
	a.log.InfoContext(ctx, "agent stopped", "reports", a.outbox.Len())
	taken := unsupervise()

	return errors.Join(a.loop.goal.Err(a.loop.result), a.outbox.Close(), taken)
}

// supervise runs the supervisor until stop is called, also after ctx ended. It calls end if another agent takes the
// state directory, and stop returns the error.
func (a *Agent) supervise(ctx context.Context, end func()) (stop func() error) {
	s := a.supervisor
	if s == nil {
		return func() error { return nil }
	}
	supervised, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	var taken error
	all.Go(func() {
		if taken = s.run(supervised, a); taken != nil {
			end()
		}
	})
	all.Go(func() { s.inform(supervised, ctx, a) })

	return func() error {
		cancel()
		all.Wait()
		return taken
	}
}

// killLate aborts the work when it takes longer than the shutdown timeout after ctx ended.
func (a *Agent) killLate(ctx, work context.Context, kill context.CancelCauseFunc) {
	<-ctx.Done()
	a.status.SetStopping()
	timeout := a.Config().ShutdownTimeout.Std()
	a.log.InfoContext(ctx, "shutting down", "timeout", timeout)
	select {
	case <-time.After(timeout):
		kill(fmt.Errorf("the agent is shutting down since %s", timeout))
	case <-work.Done():
	}
}

// freeMemoryWhenIdle calls free 10 s after its start and 10 s after each series of runs, until ctx ends.
// The Go runtime otherwise keeps memory that only a run needs.
func freeMemoryWhenIdle(ctx context.Context, ran tasks.Signal, free func()) {
	const idle = 10 * time.Second
	for ctx.Err() == nil {
		if tasks.Pause(ctx, idle, ran) || ctx.Err() != nil {
			continue
		}
		free()
		select {
		case <-ran:
		case <-ctx.Done():
		}
	}
}

// Connected retries all waiting work after a reconnect.
func (a *Agent) Connected() {
	a.delivery.Connected.Notify()
	a.heartbeat.Connected.Notify()
	a.reconnected.Notify()
	a.registrar.RenewAll()
	a.loop.wakes.retryNow()
}

// Reload applies the keys of a new configuration that can change while the agent runs. It returns
// these keys, and the changed keys that need a restart and were not applied. The caller applies the
// keys below log. An invalid configuration is an error and changes nothing: see RejectConfig.
func (a *Agent) Reload(ctx context.Context, c Config) (applied, needRestart []string, err error) {
	if err := c.Validate().Err(); err != nil {
		return nil, nil, err
	}
	applied, needRestart = a.config.apply(c)
	var attributes []any
	event := "configuration reloaded"
	if len(applied)+len(needRestart) == 0 {
		event += ", nothing changed"
	}
	if len(applied) > 0 {
		attributes = append(attributes, "applied", strings.Join(applied, ","))
	}
	if len(needRestart) > 0 {
		attributes = append(attributes, "need_restart", strings.Join(needRestart, ","))
	}
	a.log.InfoContext(ctx, event, attributes...)
	changesGroups := slices.Contains(applied, "groups") || slices.Contains(applied, "groups_order")
	if changesGroups || slices.ContainsFunc(applied, func(key string) bool { return strings.HasPrefix(key, "trust.") }) {
		a.config.warnUnsignable(ctx, a.log)
		a.operators.control.Rejudge()
		a.loop.wakes.retryNow()
	}
	if changesGroups {
		a.operators.watchGroups()
	}
	a.outbox.SetMaxBytes(int64(c.OutboxMaxBytes))
	a.status.SetConfig("")
	a.loop.wakes.assignmentsChanged()
	a.status.Changed.Notify()
	a.reportUpgrade(ctx)

	return applied, needRestart, nil
}

// RejectConfig records in the log why the configuration on disk is invalid, and in the state of the
// node until a valid one is loaded.
func (a *Agent) RejectConfig(ctx context.Context, err error) {
	problems := model.AsProblems(err).Sorted()
	a.log.ErrorContext(ctx, "configuration rejected, the current one stays in effect", "problems", problems.Count())
	for _, p := range problems {
		a.log.ErrorContext(ctx, p.Error())
	}
	a.status.SetConfig(bounds.Text("configuration rejected, the one before stays in effect: " + err.Error()))
	a.reportUpgrade(ctx)
}

// Config is the configuration of an agent.
type Config = config.Config

// Assignments are the keys of the bucket that are assigned to the node.
type Assignments interface {
	desired.ValueSource
	// Run keeps the entries current until ctx ends. It calls wake after possible changes of the entries or
	// their Sync, with the keys if it knows them. last is the memory of an earlier process. wake does not
	// block. After an error, Run is called again after a delay.
	Run(ctx context.Context, last model.Memory, wake func(keys []string)) error
	// Entries returns the known entries by key, without values.
	Entries() (map[string]model.Entry, model.Sync)
	// SetGroups sets the groups of the node. Sync is incomplete until their keys are read.
	SetGroups(groups []string)
}

// Watched is a bucket with documents about the node.
type Watched interface {
	desired.DocumentSource
	// Run and SetGroups work like the methods of Assignments.
	Run(ctx context.Context, last model.Memory, wake func(keys []string)) error
	SetGroups(groups []string)
}

// Publisher stores reports in the stream.
type Publisher interface {
	reporting.Publisher
	// MaxMessage returns the server's message limit in bytes, zero until it is known.
	MaxMessage() int64
}

// Loader creates resources from documents. *manifest.Loader implements it.
type Loader interface {
	desired.Loader
	requests.Loader
	// Origin returns the data about the assignment that resources of a manifest may request. It is called
	// with nil for the manifest of an ensure request.
	Origin(*manifest.Resolved) resource.Origin
}

// listenForScrapes makes metrics, and opens the address where they are served, if the
// configuration names one.
func (a *Agent) listenForScrapes(ctx context.Context, o Options) error {
	network, address, err := o.Config.Metrics.Address()
	if network == "" {
		return err
	}
	m := status.NewMetrics(status.Sources{
		State: a.status.Unbounded, Connection: o.Connection, Outbox: a.outbox.Stats, Requests: a.loop.requests.Ended, Log: a.log,
	})
	a.loop.manifests.Ran = m.Ran
	a.metrics, err = status.ListenMetrics(ctx, o.Host, network, address, m)

	return err
}
