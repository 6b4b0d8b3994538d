package view

import (
	"context"
	"iter"
	"time"

	"github.com/musterfleet/muster/model"
)

const (
	// tick is the least time between two signals of changes.
	tick = 250 * time.Millisecond
	// silencePause is how often nodes are looked for that were not seen lately.
	silencePause = time.Second
)

// Options are what a Fleet is made for. The zero value is usable.
type Options struct {
	// Version is that of this muster: nodes with an earlier one are marked.
	Version string
	// Keep is for how long it keeps what happened, 24 hours for 0.
	Keep time.Duration
	// Events and Runs are how many it keeps at most, 20,000 each for 0. No node takes more than
	// a hundredth of it while others need the room.
	Events, Runs int
	// Facts yields the facts of some nodes, see fleet.Selector: they are too large to be kept.
	// Without it no node has stored any.
	Facts func(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error]
	// Inventories yields the inventories of some nodes, as Facts does.
	Inventories func(ctx context.Context, nodes []string) iter.Seq2[model.Inventory, error]
}

// Fleet is what is known of a fleet: what it is now, what happened, and how complete that is. Its methods may be called
// from several goroutines; what they return is not changed any more, and must not be.
type Fleet struct {
	options Options
	nodes   *inventory
	log     *activityLog
	*completeness
	*changes
	webhooks *webhooks
	overview cache
}

// New returns a fleet of which nothing is known. Run signals its changes.
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

// Run finds nodes that are not heard of any more, and signals changes, until ctx ends.
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

// SetNodes says which nodes there were when that was asked, and takes them over. What a node
// reported since then is newer, and stays.
func (f *Fleet) SetNodes(asked time.Time, all []model.Node) {
	f.log.Forget(f.nodes.SetNodes(asked, all)...)
}

// SetNode tells the state of a node, and takes it over.
func (f *Fleet) SetNode(n model.Node) { f.nodes.SetNode(n) }

// Blind records a reason why no data about nodes has arrived since a time, see inventory.Nodes.Blind.
func (f *Fleet) Blind(reason string, since time.Time) { f.nodes.Blind(reason, since) }

// Sees removes a reason that Blind recorded.
func (f *Fleet) Sees(reason string) { f.nodes.Sees(reason) }

// RemoveNode tells that a node is not known any more.
func (f *Fleet) RemoveNode(name string) {
	f.nodes.RemoveNode(name)
	f.log.Forget(name)
}

// SetAssignments says what is assigned.
func (f *Fleet) SetAssignments(entries []model.Entry) { f.nodes.SetAssignments(entries) }

// Add tells what the stream has. The same report again changes nothing; the order does not
// matter.
func (f *Fleet) Add(m StreamMessage) { f.log.Add(m) }

// AddRuns tells runs ahead of the reports between them and those that are known: they are in
// lists, and nothing else counts them before Add tells them again.
func (f *Fleet) AddRuns(m StreamMessage) { f.log.AddRuns(m) }

// SetEnd tells the sequence of the newest message that the stream has. What comes after the
// first one that is added is counted.
func (f *Fleet) SetEnd(seq uint64) { f.log.SetEnd(seq) }
