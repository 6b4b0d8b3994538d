package simulate

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/clock"
	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/delivery"
	"github.com/musterfleet/muster/agent/reporter"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// Node is one simulated node.
type Node struct {
	Script
	fleet *Fleet
	link  Link
	log   *slog.Logger

	status   *status.Node
	heart    *status.Heartbeat
	outbox   *outbox
	delivery *delivery.Delivery
	report   *reporter.Reporter
	cpuFlags []any
	// changed is notified when the assignments may have changed, asked when there is a
	// request, and due when the rate of the fleet wants a report.
	changed, asked, due tasks.Signal
	requests            requests
	// reachable are notified when NATS can be reached again: for the state, and for reports.
	reachable [2]tasks.Signal
	// missing is what is missing until it has joined.
	missing atomic.Int32
	stored  sync.Once
	joined  chan struct{}

	// What follows belongs to the goroutine that makes the runs.
	random *rand.Rand
	// active are the assignments in force, rejected the last ones that were rejected, by key.
	active map[string]*assignment
	// manifests are those in force by name, for whoever asks.
	manifests atomic.Pointer[map[string]*Manifest]
	rejected  map[string]rejection
	// at are the times of what comes by itself.
	at struct{ run, drift, health time.Time }
	// repairs counts those of drift; flaps is that this was reported, critical that a health
	// check is.
	repairs         int
	flaps, critical bool
}

// agentInterval is how often an agent runs what is assigned, and a simulated one too.
const agentInterval = 5 * time.Minute

// newNode returns the node of a script.
func newNode(f *Fleet, s Script) *Node {
	n := &Node{
		Script: s, fleet: f, log: f.o.Log, cpuFlags: f.cpuFlags, changed: tasks.NewSignal(), asked: tasks.NewSignal(), due: tasks.NewSignal(),
		reachable: [2]tasks.Signal{tasks.NewSignal(), tasks.NewSignal()}, joined: make(chan struct{}), random: rand.New(rand.NewPCG(s.seed[0], s.seed[1])), active: map[string]*assignment{}, rejected: map[string]rejection{},
	}
	if n.Version == "" {
		n.Version = f.o.Version
	}
	n.missing.Store(2) // its assignments, and the state that is stored
	n.outbox = newOutbox(&n.Script, func() { f.reports.Add(1) })

	return n
}

// wire joins the node with NATS.
func (n *Node) wire(link Link) {
	n.link = link
	began := time.Now()
	skewed := clock.New(n.now, func() time.Duration { return time.Since(began) })
	most := func() int { return bounds.MaxDocument(link.Publisher.MaxMessage()) }
	n.status = status.New(n.Version, n.config, n.outbox.shown, func() int { return bounds.MaxDocument(link.States.MaxMessage()) }, skewed)
	n.report = reporter.New(reporter.Options{State: n.State, MaxDocument: most, Log: n.log})
	n.report.Outbox = n.outbox
	n.delivery = &delivery.Delivery{Outbox: n.outbox, Publisher: link.Publisher, Node: n.Node, MaxBatch: most, Connected: n.reachable[1], Drained: n.status.Changed, Log: n.log}
	n.heart = &status.Heartbeat{
		Store: states{link.States, n}, Node: n.status, Facts: func() (model.Facts, string) { return nil, n.Node }, Clock: skewed, ClockMoved: func() {}, Connected: n.reachable[0], Log: n.log,
		Duplicate: func(message string) { n.report.Node("", model.NodeDuplicate, message) },
	}
}

// config returns the part of a configuration that others see.
func (n *Node) config() config.Config {
	c := config.Config{Node: n.Node, Groups: n.Groups, Labels: n.Labels, Heartbeat: model.Duration(time.Minute), StateTTL: model.Duration(5 * time.Minute)}
	if n.Kind == KindSilent {
		c.StateTTL = model.Duration(time.Second)
	}

	return c
}

// now returns the time by the node's clock.
func (n *Node) now() time.Time { return time.Now().UTC().Add(n.Skew) }

// Connected is called when NATS can be reached again.
func (n *Node) Connected() {
	for _, s := range n.reachable {
		s.Notify()
	}
}

// join notes a part of what it takes to join.
func (n *Node) join() {
	if n.missing.Add(-1) == 0 {
		close(n.joined)
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
	all.Go(func() { tasks.Repeat(ctx, n.log, "storing the state", nil, n.heart.Run) })
	all.Go(func() { tasks.Repeat(ctx, n.log, "publishing reports", nil, n.delivery.Run) })
	all.Go(func() {
		tasks.Repeat(ctx, n.log, "answering requests", nil, func(ctx context.Context) error { return n.link.Serve(ctx, n) })
	})
	n.loop(ctx)
}

// stop stores that the agent was stopped, and publishes what waits.
func (n *Node) stop(ctx context.Context) {
	if n.Kind == KindSilent || n.heart == nil {
		return
	}
	n.report.Node("", model.NodeStopped, "")
	n.delivery.Flush(ctx, n.heart.Stop)
}

// loop makes the runs, one after the other.
func (n *Node) loop(ctx context.Context) {
	known := false
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-n.changed:
			complete := n.sync(ctx)
			if complete && !known {
				known = true
				n.join()
			}
			n.runPending(ctx)
			if known && n.Kind == KindSilent {
				n.fallSilent(ctx)
				return
			}
		case <-n.asked:
			n.answer(ctx)
		case <-n.due:
			n.act(ctx)
		case <-time.After(time.Until(n.next())):
			n.tick(ctx)
		}
	}
}

// fallSilent waits until the node has joined and its reports are published.
func (n *Node) fallSilent(ctx context.Context) {
	select {
	case <-n.joined:
	case <-ctx.Done():
	}
	for n.outbox.Len() > 0 && ctx.Err() == nil {
		tasks.Pause(ctx, 10*time.Millisecond, nil)
	}
}

// runPending runs what is new.
func (n *Node) runPending(ctx context.Context) {
	for _, key := range slices.Sorted(maps.Keys(n.active)) {
		if !n.active[key].ran {
			n.runWhole(ctx, key, model.CauseManifest)
		}
	}
}

// next returns when something comes by itself.
func (n *Node) next() time.Time {
	if n.at.run.IsZero() {
		n.at.run = time.Now().Add(n.between(agentInterval/2, agentInterval))
	}
	switch {
	case n.at.drift.IsZero() && n.Kind == KindDrifting:
		n.at.drift = time.Now().Add(n.between(15*time.Second, time.Minute))
	case n.at.drift.IsZero() && n.Kind == KindFlapping:
		n.at.drift = time.Now().Add(n.between(3*time.Second, 6*time.Second))
	case n.at.health.IsZero() && n.Kind == KindUnhealthy:
		n.at.health = time.Now().Add(n.between(20*time.Second, time.Minute))
	}

	return tasks.Sooner(tasks.Sooner(n.at.run, n.at.drift), n.at.health)
}

// between returns a random duration.
func (n *Node) between(least, most time.Duration) time.Duration {
	return least + time.Duration(n.random.Int64N(int64(most-least)+1))
}

// tick does what is due by itself.
func (n *Node) tick(ctx context.Context) {
	isDue := func(at *time.Time) bool {
		due := !at.IsZero() && !time.Now().Before(*at)
		if due {
			*at = time.Time{}
		}
		return due
	}
	if isDue(&n.at.drift) {
		n.repair(n.key())
	}
	if isDue(&n.at.health) {
		n.check(n.key())
	}
	if isDue(&n.at.run) {
		for _, key := range slices.Sorted(maps.Keys(n.active)) {
			n.runWhole(ctx, key, model.CauseSchedule)
		}
	}
}

// act reports something, as the rate of the fleet wants it: mostly a run that found all as it
// was.
func (n *Node) act(ctx context.Context) {
	switch choice := n.random.IntN(20); {
	case n.outbox.Len() > maxWaiting:
	case choice == 0:
		n.repair(n.key())
	case choice == 1:
		n.check(n.key())
	default:
		if key := n.key(); key != "" {
			n.runNow(ctx, key, model.CauseSchedule)
		}
	}
}

// maxWaiting is from how many waiting reports on the rate of the fleet wants none of a node.
const maxWaiting = 100

// key returns one of the assignments in force, empty where there is none.
func (n *Node) key() string {
	if len(n.active) == 0 {
		return ""
	}

	return place(slices.Sorted(maps.Keys(n.active)), n.random.IntN(len(n.active)))
}

// State returns the state of the node.
func (n *Node) State() model.NodeState { return n.dressed(n.status.State()) }

// dressed returns a state with what is known of the simulated machine.
func (n *Node) dressed(s model.NodeState) model.NodeState {
	s.Host, s.Started, s.At = n.Host, s.Started.Add(n.Skew), s.At.Add(n.Skew)

	return s
}

// Facts returns the facts of the node now.
func (n *Node) Facts() model.Facts { return n.facts(time.Now(), n.cpuFlags) }

// states stores the states and the facts of a node as its machine has them.
type states struct {
	status.Store
	node *Node
}

// PutState stores a state.
func (s states) PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error {
	err := s.Store.PutState(ctx, s.node.dressed(state), ttl)
	if err == nil {
		s.node.stored.Do(s.node.join)
	}

	return err
}

// PutFacts stores the facts, which are made for it: 5,000 nodes that kept them would take 100 MB.
func (s states) PutFacts(ctx context.Context, node string, _ model.Facts) error {
	return s.Store.PutFacts(ctx, node, s.node.Facts())
}

// State returns the state that is stored, by the clock of this machine.
func (s states) State(ctx context.Context, node string) (model.Node, error) {
	found, err := s.Store.State(ctx, node)
	found.Started, found.At = found.Started.Add(-s.node.Skew), found.At.Add(-s.node.Skew)

	return found, err
}
