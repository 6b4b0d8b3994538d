package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
)

// Assignments are the keys of the bucket that are assigned to one node, as those of an agent.
type Assignments interface {
	Run(ctx context.Context, last model.Memory, wake func(keys []string)) error
	Entries() (map[string]model.Entry, model.Sync)
	SetGroups(groups []string)
	Read(ctx context.Context, key string, revision uint64) (model.Entry, error)
}

// Publisher stores reports in the stream.
type Publisher interface {
	reporting.Publisher
	// MaxMessage returns how many bytes the server takes; zero while it is not known.
	MaxMessage() int64
}

// Link is what a node has of NATS.
type Link struct {
	Assignments Assignments
	States      status.Store
	Publisher   Publisher
	// Serve answers requests to the node until ctx ends. It calls Node.Listening once it misses none.
	Serve func(ctx context.Context, n *Node) error
}

// Options are what a Fleet is made from.
type Options struct {
	Scripts []Script
	// Version is that of muster.
	Version string
	// Rate is how many reports a second all nodes make together, where something is assigned to
	// them; 0 is as many as they make by themselves.
	Rate float64
	// Connect joins a node with NATS; connected is called whenever that can be reached again.
	Connect func(ctx context.Context, s Script, connected func()) (Link, error)
	// Control is what operators write about the nodes. It is run once Connect has joined all.
	Control Control
	// Load returns what a value comes to; the error is why nodes reject it.
	Load func(ctx context.Context, e model.Entry) (*Manifest, error)
	// Log is that of all nodes, each of which logs what an agent would.
	Log *slog.Logger
}

// Fleet is a fleet of simulated nodes. Make it with New.
type Fleet struct {
	o        Options
	nodes    []*Node
	cpuFlags []any
	compared comparisons
	// reports counts those that were made.
	reports atomic.Uint64
}

// New returns a fleet that has not begun.
func New(o Options) *Fleet {
	f := &Fleet{o: o, cpuFlags: flagList()}
	for _, s := range o.Scripts {
		f.nodes = append(f.nodes, newNode(f, s))
	}

	return f
}

// Reports returns how many reports the nodes have made.
func (f *Fleet) Reports() uint64 { return f.reports.Load() }

// The start of many nodes at once is spread, so that none waits for long for its answers.
const (
	joinAtOnce  = 64
	joinTimeout = 5 * time.Second
)

// Run is the fleet until ctx ends. joined is called once all nodes know what is assigned to
// them, have stored their state and listen to requests. It returns when everything has ended that it started; the
// error is that of Connect.
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
	all.Go(func() { f.followControl(ctx) })
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

// Stop has all nodes store that they were stopped, and publish what waits, until ctx ends. It
// is called after Run.
func (f *Fleet) Stop(ctx context.Context) {
	var all sync.WaitGroup
	for _, n := range f.nodes {
		all.Go(func() { n.stop(ctx) })
	}
	all.Wait()
}

// beat is how often the rate is looked at.
const beat = 5 * time.Millisecond

// keepRate has the nodes make as many reports as wanted, in turn, until ctx ends. What they
// do not manage in a second is left out.
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

// ErrTaken is a name that a node has which is not simulated, or a simulation that runs.
var ErrTaken = errors.New("the name of a simulated node is taken")

// CheckNames returns an error that wraps ErrTaken where one of the scripts has the name of a
// node that is not simulated, or that runs already. known are the nodes of the fleet.
func CheckNames(scripts []Script, known []model.Node) error {
	played := map[string]bool{}
	for _, s := range scripts {
		played[s.Node] = true
	}
	for _, k := range known {
		isOld := k.Unreadable == "" && k.Labels[Label] != "" && (k.Stopped() || k.Silent)
		if played[k.Node] && !isOld {
			return fmt.Errorf("%w: %s is known, and is no simulated node that has ended (end the simulation that runs, or give the node another name)", ErrTaken, k.Node)
		}
	}

	return nil
}
