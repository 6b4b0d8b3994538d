package view

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
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
}

// Fleet is what is known of a fleet. Its methods may be called from several goroutines; what
// they return is not changed any more, and must not be.
type Fleet struct {
	options  Options
	overview cache
	selector *selector

	mu      sync.RWMutex
	states  states
	nodes   table
	entries *fleet.Assigned
	// statuses are those of the last node, whose memory the next one takes.
	statuses []fleet.RolloutStatus
	progress progress
	repeats  repeats
	words    words
	events   *bounded[happened]
	runs     runs
	requests requests
	points   points
	counts   counts
	top      top
	// webhooks are the problems of webhooks.
	webhooks map[webhookID]string
	// last is the newest place of an event.
	last      place
	followers map[*follower]bool
	waiting   map[chan struct{}]bool
	// changes counts what changed, signalled those of which readers know; generation counts the
	// signals.
	changes, signalled, generation uint64
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

	f := &Fleet{
		options: o, selector: newSelector(), states: newStates(), words: newWords(), nodes: newTable(), entries: fleet.NewAssigned(nil), repeats: newRepeats(),
		events: newBounded[happened](o.Events), runs: newRuns(o.Runs), requests: newRequests(), points: newPoints(o.Keep), counts: counts{reports: map[ReportCount]uint64{}}, top: newTop(o.Keep),
		progress: progress{problems: map[string]string{}}, webhooks: map[webhookID]string{}, followers: map[*follower]bool{}, waiting: map[chan struct{}]bool{},
	}
	isKnown := func(node string) bool { return f.nodes.byName[node] != nil }
	f.events.isKnown, f.runs.isKnown = isKnown, isKnown

	return f
}

// Run finds nodes that are not heard of any more, and signals changes, until ctx ends.
func (f *Fleet) Run(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			if now.Sub(looked) >= silencePause {
				looked = now
				f.silence(now)
			}
			f.signal()
		}
	}
}

// signal wakes those who wait for changes, where there were some.
func (f *Fleet) signal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changes == f.signalled {
		return
	}
	f.signalled = f.changes
	f.generation++
	for c := range f.waiting {
		select {
		case c <- struct{}{}:
		default: // it has not received the one before
		}
	}
}

// Changes returns a channel that receives when something may have changed, at most a few times a
// second, until cancel. Who does not receive misses nothing but the time of it.
func (f *Fleet) Changes() (changed <-chan struct{}, cancel func()) {
	c := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting[c] = true

	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.waiting, c)
	}
}
