package view

import (
	"context"
	"iter"
	"time"

	"github.com/musterfleet/muster/model"
)

const (
	// tick is the minimum time between two signals of changes.
	tick = 250 * time.Millisecond
	// silencePause is the interval between searches for silent nodes.
	silencePause = time.Second
)

// Options configure a Fleet. The zero value is usable.
type Options struct {
	// Version is the version of this muster. Nodes with an earlier version are marked.
	Version string
	// Keep is the retention time, 24 hours for 0.
	Keep time.Duration
	// Events and Runs limit the retained events and runs, 20,000 each for 0. If others need the room, one
	// node uses at most a hundredth.
	Events, Runs int
	// Facts yields the facts of nodes, see targets.Selector. Facts are too large to retain. If it is nil, no
	// node has facts.
	Facts func(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error]
	// Inventories yields the inventories of nodes, like Facts.
	Inventories func(ctx context.Context, nodes []string) iter.Seq2[model.Inventory, error]
}

// Fleet is the view of a fleet: its current state, its events, and how complete they are. It is safe for
// concurrent use. Do not change returned values.
type Fleet struct {
	options Options
	nodes   *inventory
	log     *activityLog
	*completeness
	*changes
	webhooks *webhooks
	overview cache
}

// New returns an empty fleet. Run signals its changes.
func New(o Options) *Fleet {
	if o.Keep <= 0 {
		o.Keep = 24 * time.Hour
	}
	const many = 20_000
	for _, bound := range []*int{&o.Events, &o.Runs} {
		if *bound <= 0 {
			*bound = many
		}
	}
	if o.Facts == nil {
		o.Facts = func(context.Context, []string) iter.Seq2[model.NodeFacts, error] {
			return func(func(model.NodeFacts, error) bool) {}
		}
	}
	c := newChanges()
	f := &Fleet{
		options: o, changes: c, nodes: newInventory(inventoryOptions{Facts: o.Facts, Inventories: o.Inventories, Changed: c.note}), completeness: newCompleteness(o.Keep, c.note),
		webhooks: newWebhooks(c.note),
	}
	f.log = newActivityLog(activityOptions{Keep: o.Keep, Events: o.Events, Runs: o.Runs, IsKnown: f.nodes.IsKnown, Changed: c.note})

	return f
}

// Run finds silent nodes and signals changes, until ctx ends.
func (f *Fleet) Run(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	var checked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			if now.Sub(checked) >= silencePause {
				checked = now
				f.nodes.Silence(now)
			}
			f.signal()
		}
	}
}

// SetNodes sets all nodes as of the time of the request and takes ownership of them. Newer states of nodes
// stay.
func (f *Fleet) SetNodes(asked time.Time, all []model.Node) {
	f.log.Forget(f.nodes.SetNodes(asked, all)...)
}

// SetNode sets the state of a node and takes ownership of it.
func (f *Fleet) SetNode(n model.Node) { f.nodes.SetNode(n) }

// Blind records a reason why no data about nodes has arrived since a time, see inventory.Nodes.Blind.
func (f *Fleet) Blind(reason string, since time.Time) { f.nodes.Blind(reason, since) }

// Sees removes a reason that Blind recorded.
func (f *Fleet) Sees(reason string) { f.nodes.Sees(reason) }

// RemoveNode removes a node.
func (f *Fleet) RemoveNode(name string) {
	f.nodes.RemoveNode(name)
	f.log.Forget(name)
}

// SetAssignments sets the assignments.
func (f *Fleet) SetAssignments(entries []model.Entry) { f.nodes.SetAssignments(entries) }

// Add adds a message of the stream. A repeated message changes nothing. The order does not matter.
func (f *Fleet) Add(m StreamMessage) { f.log.Add(m) }

// AddRuns adds runs before the reports between them and the known reports. They appear in lists, but are
// counted only when Add adds them again.
func (f *Fleet) AddRuns(m StreamMessage) { f.log.AddRuns(m) }

// SetEnd sets the sequence number of the newest message of the stream. Later messages are counted.
func (f *Fleet) SetEnd(seq uint64) { f.log.SetEnd(seq) }
