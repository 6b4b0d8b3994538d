// Package simulate simulates the agents of many nodes in one process, for tests, demos and
// measurements. Each node follows its assignments and control documents, stores its state and facts,
// answers requests, and reports runs and drift. A script decides what happens to its resources; no
// machine is read or changed.
//
// State, heartbeat, reports, delivery and control documents use the code of the agent, so readers
// cannot distinguish a simulated node. The outbox is in memory, because thousands of outboxes on one
// disk would wait for their syncs.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Watched is a bucket that a node watches, as in package agent.
type Watched interface {
	desired.DocumentSource
	// Run watches until ctx ends. It calls wake after changes.
	Run(ctx context.Context, last model.Memory, wake func(keys []string)) error
	SetGroups(groups []string)
}

// Publisher stores reports in the stream.
type Publisher interface {
	reporting.Publisher
	// MaxMessage returns the server's message limit in bytes, zero until it is known.
	MaxMessage() int64
}

// Link is a node's connection to NATS.
type Link struct {
	// Assignments and Control are the buckets of the assignments and of the control documents.
	Assignments, Control Watched
	States               status.Store
	Publisher            Publisher
	// Serve answers requests to the node until ctx ends. It calls Node.Listening when the subscription is
	// complete.
	Serve func(ctx context.Context, n *Node) error
}

// Options configure a Fleet.
type Options struct {
	Scripts []Script
	// Version is the version of muster.
	Version string
	// Rate is the number of reports per second of all nodes with assignments; 0 means no additional reports.
	Rate float64
	// Connect connects a node to NATS. It calls connected after each reconnect.
	Connect func(ctx context.Context, s Script, connected func()) (Link, error)
	// Types are the resource types of manifests.
	Types resource.Types
	// Log is the log of all nodes. Each node logs like an agent.
	Log *slog.Logger
}

// Fleet is a fleet of simulated nodes. Create it with New.
type Fleet struct {
	o        Options
	nodes    []*Node
	cpuFlags []any
	compared comparisons
	loader   *loader
	// reports is the number of reports.
	reports atomic.Uint64
}

// New returns a fleet. Run starts it.
func New(o Options) *Fleet {
	f := &Fleet{o: o, cpuFlags: flagList(), loader: newLoader(o.Types)}
	for _, s := range o.Scripts {
		f.nodes = append(f.nodes, newNode(f, s))
	}

	return f
}

// The start of many nodes is spread, so that none waits long for its answers.
const (
	joinAtOnce  = 64
	joinTimeout = 5 * time.Second
)

// Run runs the fleet until ctx ends. It calls joined when all nodes know their assignments, have stored their
// states and listen to requests. It waits for all its goroutines. It returns the error of Connect.
func (f *Fleet) Run(ctx context.Context, joined func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for _, n := range f.nodes {
		link, err := f.o.Connect(ctx, n.machine.Script, n.Connected)
		if err == nil {
			err = n.wire(f, link)
		}
		if err != nil {
			return err
		}
	}
	slots := make(chan struct{}, joinAtOnce)
	for _, n := range f.nodes {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		all.Go(func() { n.run(ctx) })
		all.Go(func() {
			select {
			case <-n.joining.done:
			case <-time.After(joinTimeout):
			case <-ctx.Done():
			}
			<-slots
		})
	}
	for _, n := range f.nodes {
		select {
		case <-n.joining.done:
		case <-ctx.Done():
			return nil
		}
	}
	joined()
	f.keepRate(ctx)

	return nil
}

// Stop stores that all nodes were stopped, and publishes waiting reports, until ctx ends. Call it after Run.
func (f *Fleet) Stop(ctx context.Context) {
	var all sync.WaitGroup
	for _, n := range f.nodes {
		all.Go(func() { n.stop(ctx) })
	}
	all.Wait()
}

// beat is the interval of rate checks.
const beat = 5 * time.Millisecond

// keepRate makes the nodes report at the wanted rate, in turn, until ctx ends. It skips reports that do not
// fit into a second.
func (f *Fleet) keepRate(ctx context.Context) {
	if f.o.Rate <= 0 {
		<-ctx.Done()
		return
	}
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	for began, made, next := time.Now(), f.reports.Load(), 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		due := int(f.o.Rate*time.Since(began).Seconds()) - int(f.reports.Load()-made)
		for range min(due, len(f.nodes)) {
			f.nodes[next].due.Notify()
			next = (next + 1) % len(f.nodes)
		}
		if time.Since(began) > time.Second {
			began, made = time.Now(), f.reports.Load()
		}
	}
}

// ErrTaken means that the name of a simulated node belongs to another node or a running simulation.
var ErrTaken = errors.New("the name of a simulated node is taken")

// CheckNames returns an error that wraps ErrTaken if a script has the name of a node that is not simulated or
// that runs. known are the nodes of the fleet.
func CheckNames(scripts []Script, known []model.Node) error {
	played := map[string]bool{}
	for _, s := range scripts {
		played[s.Node] = true
	}
	for _, k := range known {
		isOld := k.Unreadable == "" && k.Labels[Label] != "" && (k.Stopped() || k.Silent)
		if played[k.Node] && !isOld {
			return fmt.Errorf("%w: %s belongs to another node or a running simulation (end the simulation, or rename the node)", ErrTaken, k.Node)
		}
	}

	return nil
}

func (n *Node) openControl(at *status.Clock) error {
	c, err := desired.OpenControl(desired.ControlOptions{
		Source: n.link.Control, Gate: desired.NoGate(), Clock: at, Families: n.machine.families, Changed: n.noteControl, Log: n.log,
		Rejected: func(why string) { n.report.Node("", model.NodeRefused, bounds.Text(why)) },
	})
	n.control = c

	return err
}

// noteControl adds the control documents to the state, and joins the operators' groups.
func (n *Node) noteControl() {
	n.control.Show(n.status.SetControl)
	if n.machine.join(n.control.Groups()) {
		n.link.Assignments.SetGroups(slices.Clone(n.machine.groups()))
		n.link.Control.SetGroups(slices.Clone(n.machine.groups()))
		n.groupsChanged.Notify()
		n.changed.Notify()
		n.control.Wake()
		n.status.Changed.Notify()
	}
	n.controlChanged.Notify()
}
