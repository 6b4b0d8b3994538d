package view

import (
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet/summary"
)

const (
	// overviewPause is the least time between two overviews, unless readers were told of a change,
	// overviewAge is how old one becomes where nothing changes.
	overviewPause = 500 * time.Millisecond
	overviewAge   = 10 * time.Second
)

// cache is the last overview that was made. Who holds its lock makes the next one, the others
// wait for it.
type cache struct {
	sync.Mutex
	made                time.Time
	changes, generation uint64
	summary             summary.Summary
	top                 Top
}

// Overview returns the fleet as a whole. It is made a few times a second at most.
func (f *Fleet) Overview() Overview {
	now := time.Now()
	s, top := f.summary(now)
	f.mu.RLock()
	defer f.mu.RUnlock()
	since := now.Add(-f.options.Keep)
	if f.progress.since.After(since) {
		since = f.progress.since
	}

	return Overview{Progress: f.progress.get(), Summary: s, Top: top, History: f.points.get(since, now), Webhooks: webhookProblems(f.webhooks)}
}

// summary returns what is expensive of the overview.
func (f *Fleet) summary(now time.Time) (summary.Summary, Top) {
	c := &f.overview
	c.Lock()
	defer c.Unlock()
	f.mu.RLock()
	changes, generation := f.changes, f.generation
	age := now.Sub(c.made)
	if !c.made.IsZero() && age < overviewAge && (changes == c.changes || generation == c.generation && age < overviewPause) {
		f.mu.RUnlock()
		return c.summary, c.top
	}
	nodes, entries := f.nodes.all(), f.entries
	f.mu.RUnlock()
	c.summary = summary.From(nodes, entries, f.options.Version, now)
	f.mu.RLock()
	c.top = f.top.get("", c.summary.Failing, now)
	f.mu.RUnlock()
	c.made, c.changes, c.generation = now, changes, generation

	return c.summary, c.top
}
