package simulate

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"

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

// newNode returns a node that follows a script.
func newNode(f *Fleet, s Script) *Node {
	n := &Node{
		machine: newMachine(f, s), log: f.o.Log, joining: newJoining(),
		changed: tasks.NewSignal(), controlChanged: tasks.NewSignal(), groupsChanged: tasks.NewSignal(), due: tasks.NewSignal(),
		reachable: [2]tasks.Signal{tasks.NewSignal(), tasks.NewSignal()},
	}
	n.outbox = newOutbox(&n.machine.Script, func() { f.reports.Add(1) })

	return n
}

// wire connects the node with NATS.
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
	if err := n.openControl(f.o.Control, skewed); err != nil {
		return err
	}
	random := chance{rand.New(rand.NewPCG(m.seed[0], m.seed[1]))}
	n.assigned = &assigned{
		machine: m, source: link.Assignments, load: f.o.Load, compared: &f.compared, status: n.status, report: n.report, again: n.changed,
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
