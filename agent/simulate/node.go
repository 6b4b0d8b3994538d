package simulate

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// Node is one simulated node.
type Node struct {
	machine *machine
	link    Link
	log     *slog.Logger

	status   *status.Node
	heart    *status.Heartbeat
	outbox   *outbox
	delivery *reporting.Delivery
	report   *reporting.Reporter
	control  *desired.Control
	assigned *assigned
	runs     *runs
	requests *Requests
	joining  *joining
	// changed, controlChanged and groupsChanged are notified when assignments, control documents and
	// groups may have changed. due is notified when the fleet needs a report for its rate.
	changed, controlChanged, groupsChanged, due tasks.Signal
	// reachable are notified after a reconnect: for the state, and for reports.
	reachable [2]tasks.Signal

	// The following fields belong to the goroutine of the runs. paused reports whether the node was
	// paused at the last check, known whether it has read its assignments.
	timers        timers
	incidents     incidents
	paused, known bool
}

func newNode(f *Fleet, s Script) *Node {
	n := &Node{
		machine: newMachine(f, s), log: f.o.Log, joining: newJoining(),
		changed: tasks.NewSignal(), controlChanged: tasks.NewSignal(), groupsChanged: tasks.NewSignal(), due: tasks.NewSignal(),
		reachable: [2]tasks.Signal{tasks.NewSignal(), tasks.NewSignal()},
	}
	n.outbox = newOutbox(&n.machine.Script, func() { f.reports.Add(1) })

	return n
}

func (n *Node) wire(f *Fleet, link Link) error {
	n.link = link
	m, began := n.machine, time.Now()
	skewed := status.NewClock(m.now, func() time.Duration { return time.Since(began) })
	most := func() int { return bounds.MaxDocument(link.Publisher.MaxMessage()) }
	n.status = status.New(m.Version, m.config, n.outbox.shown, func() int { return bounds.MaxState(link.States.MaxMessage()) }, skewed)
	n.report = reporting.NewReporter(reporting.ReporterOptions{State: n.State, MaxDocument: most, Log: n.log})
	n.report.Outbox = n.outbox
	n.delivery = &reporting.Delivery{Outbox: n.outbox, Publisher: link.Publisher, Node: m.Node, MaxBatch: most, Connected: n.reachable[1], Drained: tasks.NewSignal(), Log: n.log}
	n.heart = &status.Heartbeat{
		Store: states{link.States, m, n.joining}, Node: n.status, Facts: func() (model.Facts, string) { return nil, m.Node }, Clock: skewed, ClockMoved: func() { n.control.Wake() }, Connected: n.reachable[0], Drained: n.delivery.Drained, Log: n.log,
		Duplicate: func(message string) { n.report.Node("", model.NodeDuplicate, message) },
	}
	if err := n.openControl(skewed); err != nil {
		return err
	}
	random := chance{rand.New(rand.NewPCG(m.seed[0], m.seed[1]))}
	n.assigned = &assigned{
		machine: m, source: link.Assignments, load: f.loader.load, compared: &f.compared, status: n.status, report: n.report, again: n.changed,
		active: map[string]*assignment{}, rejected: map[string]rejection{},
	}
	n.runs = &runs{chance: random, machine: m, assigned: n.assigned, control: n.control, status: n.status, report: n.report}
	n.requests = &Requests{machine: m, runs: n.runs, report: n.report, asked: tasks.NewSignal()}
	n.timers, n.incidents = timers{chance: random, kind: m.Kind}, incidents{runs: n.runs}

	return nil
}

// Name returns the id of the node.
func (n *Node) Name() string { return n.machine.Node }

// Version returns the version of muster on the node.
func (n *Node) Version() string { return n.machine.Version }

// Groups returns the current groups of the node.
func (n *Node) Groups() []string { return n.machine.groups() }

// GroupsChanged returns a signal that is notified when the groups change.
func (n *Node) GroupsChanged() tasks.Signal { return n.groupsChanged }

// Requests returns the service that executes requests.
func (n *Node) Requests() *Requests { return n.requests }

// Previews returns the service that answers previews.
func (n *Node) Previews() Previews { return Previews{n.assigned} }

// Listening records that the node has subscribed to its requests.
func (n *Node) Listening() { n.joining.listening.Do(n.joining.note) }

// State returns the state of the node.
func (n *Node) State() model.NodeState { return n.machine.identified(n.status.State()) }

// Facts returns the current facts of the node.
func (n *Node) Facts() model.Facts { return n.machine.factsNow() }

// Connected retries waiting work after a reconnect.
func (n *Node) Connected() {
	for _, s := range n.reachable {
		s.Notify()
	}
}

// run runs the node until ctx ends or the node falls silent.
func (n *Node) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	n.report.Node("", model.NodeStarted, "")
	all.Go(func() {
		tasks.Repeat(ctx, n.log, "following the assignments", nil, func(ctx context.Context) error {
			return n.link.Assignments.Run(ctx, model.Memory{}, func([]string) { n.changed.Notify() })
		})
	})
	all.Go(func() {
		tasks.Repeat(ctx, n.log, "following the control documents", nil, func(ctx context.Context) error {
			return n.link.Control.Run(ctx, model.Memory{}, func([]string) { n.control.Wake() })
		})
	})
	all.Go(func() { tasks.Repeat(ctx, n.log, "reading control documents", nil, n.control.Run) })
	all.Go(func() { tasks.Repeat(ctx, n.log, "storing the state", nil, n.heart.Run) })
	all.Go(func() { tasks.Repeat(ctx, n.log, "publishing reports", nil, n.delivery.Run) })
	all.Go(func() {
		tasks.Repeat(ctx, n.log, "answering requests", nil, func(ctx context.Context) error { return n.link.Serve(ctx, n) })
	})
	n.loop(ctx)
}

// stop stores that the agent stopped, and publishes waiting reports.
func (n *Node) stop(ctx context.Context) {
	if n.machine.Kind == KindSilent || n.heart == nil {
		return
	}
	n.report.Node("", model.NodeStopped, "")
	n.delivery.Flush(ctx, n.heart.Stop)
}

// joining tracks the steps of a joining node.
type joining struct {
	// done is closed after the last step.
	done              chan struct{}
	missing           atomic.Int32
	stored, listening sync.Once
}

// newJoining returns the steps of a node: read its assignments, store its state, listen to requests.
func newJoining() *joining {
	j := &joining{done: make(chan struct{})}
	j.missing.Store(3)

	return j
}

func (j *joining) note() {
	if j.missing.Add(-1) == 0 {
		close(j.done)
	}
}

// states stores the states and facts of a node as its machine.
type states struct {
	status.Store
	machine *machine
	joining *joining
}

// PutState stores a state.
func (s states) PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error {
	err := s.Store.PutState(ctx, s.machine.identified(state), ttl)
	if err == nil {
		s.joining.stored.Do(s.joining.note)
	}

	return err
}

// PutFacts stores the facts. It generates them, because the facts of 5,000 nodes take 100 MB.
func (s states) PutFacts(ctx context.Context, node string, _ model.Facts) error {
	return s.Store.PutFacts(ctx, node, s.machine.factsNow())
}

// State returns the stored state, with the clock of this machine.
func (s states) State(ctx context.Context, node string) (model.Node, error) {
	found, err := s.Store.State(ctx, node)
	found.Started, found.At = found.Started.Add(-s.machine.Skew), found.At.Add(-s.machine.Skew)

	return found, err
}

// outbox stores the reports of a node in memory until they are published.
type outbox struct {
	// skew is the offset of the node's clock, backlog the number of reports that it never publishes.
	skew    time.Duration
	backlog int
	ready   tasks.Signal
	// added is called with each report.
	added func()

	mu      sync.Mutex
	waiting []model.Report
	seq     uint64
}

// newOutbox returns an empty outbox. The sequence of a later outbox of the same node is higher.
func newOutbox(s *Script, added func()) *outbox {
	return &outbox{skew: s.Skew, backlog: s.Backlog, ready: tasks.NewSignal(), added: added, seq: uint64(time.Now().UnixMicro())}
}

// Append adds a report, with the time and the id of the node's clock.
func (b *outbox) Append(r model.Report) (uint64, error) {
	if b.skew != 0 {
		r.Time = r.Time.Add(b.skew)
		id, err := ksuid.NewRandomWithTime(r.Time)
		if err != nil {
			return 0, err
		}
		r.ID = id.String()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seq++
	r.Seq = b.seq
	b.waiting = append(b.waiting, r)
	b.added()

	return r.Seq, nil
}

// Sync wakes the delivery.
func (b *outbox) Sync() error {
	b.ready.Notify()

	return nil
}

// SyncSoon is Sync.
func (b *outbox) SyncSoon() { b.ready.Notify() }

// Next returns at most most of the oldest reports.
func (b *outbox) Next(most int) []model.Report {
	b.mu.Lock()
	defer b.mu.Unlock()

	return slices.Clone(b.waiting[:min(most, len(b.waiting))])
}

// Ack removes the reports up to a sequence number.
func (b *outbox) Ack(seq uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < len(b.waiting) && b.waiting[n].Seq <= seq {
		n++
	}
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}

	return nil
}

// Drop is Ack.
func (b *outbox) Drop(seq uint64) error { return b.Ack(seq) }

// Len returns the number of reports that are not yet published.
func (b *outbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return len(b.waiting)
}

func (b *outbox) shown() int { return b.Len() + b.backlog }

// Ready receives a value when there may be reports to publish.
func (b *outbox) Ready() tasks.Signal { return b.ready }

// machine contains the visible properties of a node.
type machine struct {
	Script
	cpuFlags []any
	// joined are the groups of the script and the operators' groups.
	joined atomic.Pointer[[]string]
}

func newMachine(f *Fleet, s Script) *machine {
	if s.Version == "" {
		s.Version = f.o.Version
	}
	m := &machine{Script: s, cpuFlags: f.cpuFlags}
	m.joined.Store(&m.Script.Groups)

	return m
}

// groups returns all groups of the node, the winning group first. Callers must not change them.
func (m *machine) groups() []string { return *m.joined.Load() }

func (m *machine) join(given model.Groups) (changed bool) {
	all := given.Join(m.Groups, nil)
	if slices.Equal(all, m.groups()) {
		return false
	}
	m.joined.Store(&all)

	return true
}

func (m *machine) families() []string { return model.Families(m.Node, m.groups()) }

func (m *machine) config() config.Config {
	c := config.Config{Node: m.Node, Groups: m.groups(), Labels: m.Labels, Heartbeat: model.Duration(time.Minute), StateTTL: model.Duration(5 * time.Minute)}
	if m.Kind == KindSilent {
		c.StateTTL = model.Duration(time.Second)
	}

	return c
}

// now returns the time by its clock.
func (m *machine) now() time.Time { return time.Now().UTC().Add(m.Skew) }

func (m *machine) identified(s model.NodeState) model.NodeState {
	s.Host, s.Started, s.At = m.Host, s.Started.Add(m.Skew), s.At.Add(m.Skew)

	return s
}

func (m *machine) factsNow() model.Facts { return m.facts(time.Now(), m.cpuFlags) }

func (m *machine) failing(of *Manifest) int {
	if m.Error == "" || len(of.Resources) == 0 {
		return -1
	}

	return int(m.seed[1] % uint64(len(of.Resources)))
}

func (m *machine) begin(key string, revision uint64, digest string, cause model.Cause) *model.Run {
	return &model.Run{
		Protocol: model.ProtocolRun, RunID: ksuid.New().String(), Node: m.Node, Manifest: key, Revision: revision, Digest: digest,
		Cause: cause, Started: m.now(), Version: m.Version,
	}
}

// transaction returns the transaction of a resource that was in its desired state.
func (m *machine) transaction(run *model.Run, r *Resource) *model.Transaction {
	return &model.Transaction{
		Protocol: model.ProtocolTransaction, EventID: ksuid.New().String(), Timestamp: m.now(), Type: r.Ref.Type, Name: r.Ref.Name,
		Provider: r.Provider, Alias: r.Alias, RequestedEnsure: r.Ensure, FinalEnsure: r.Ensure, Source: r.Source, Properties: r.Properties,
		RunID: run.RunID, Node: m.Node, Manifest: run.Manifest, Revision: run.Revision, Digest: run.Digest, Cause: run.Cause, Noop: run.Noop,
		CorrelationID: run.CorrelationID,
	}
}
