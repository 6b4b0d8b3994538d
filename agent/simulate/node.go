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
	// changed is notified when the assignments may have changed, controlChanged when what operators
	// wrote may have, groupsChanged when the groups have, and due when the rate of the fleet wants a
	// report.
	changed, controlChanged, groupsChanged, due tasks.Signal
	// reachable are notified when NATS can be reached again: for the state, and for reports.
	reachable [2]tasks.Signal

	// What follows belongs to the goroutine that makes the runs. paused is that the node was paused
	// when it last looked, known that it knows what is assigned to it.
	timers        timers
	incidents     incidents
	paused, known bool
}

// newNode returns the node of a script.
func newNode(f *Fleet, s Script) *Node {
	n := &Node{
		machine: newMachine(f, s), log: f.o.Log, joining: newJoining(),
		changed: tasks.NewSignal(), controlChanged: tasks.NewSignal(), groupsChanged: tasks.NewSignal(), due: tasks.NewSignal(),
		reachable: [2]tasks.Signal{tasks.NewSignal(), tasks.NewSignal()},
	}
	n.outbox = newOutbox(&n.machine.Script, func() { f.reports.Add(1) })

	return n
}

// wire joins the node with NATS.
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

// Name returns its id.
func (n *Node) Name() string { return n.machine.Node }

// Version returns that of muster there.
func (n *Node) Version() string { return n.machine.Version }

// Groups returns the groups that it is in now, and GroupsChanged is notified when they are others.
func (n *Node) Groups() []string { return n.machine.groups() }

// GroupsChanged is notified when Groups are others.
func (n *Node) GroupsChanged() tasks.Signal { return n.groupsChanged }

// Requests returns what executes requests.
func (n *Node) Requests() *Requests { return n.requests }

// Previews returns what answers previews.
func (n *Node) Previews() Previews { return Previews{n.assigned} }

// Listening is called when the node misses no request any more.
func (n *Node) Listening() { n.joining.listening.Do(n.joining.note) }

// State returns the state of the node.
func (n *Node) State() model.NodeState { return n.machine.identified(n.status.State()) }

// Facts returns the facts of the node now.
func (n *Node) Facts() model.Facts { return n.machine.factsNow() }

// Connected is called when NATS can be reached again.
func (n *Node) Connected() {
	for _, s := range n.reachable {
		s.Notify()
	}
}

// run is the node until ctx ends, or until it falls silent.
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

// stop stores that the agent was stopped, and publishes what waits.
func (n *Node) stop(ctx context.Context) {
	if n.machine.Kind == KindSilent || n.heart == nil {
		return
	}
	n.report.Node("", model.NodeStopped, "")
	n.delivery.Flush(ctx, n.heart.Stop)
}
