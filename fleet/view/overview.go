package view

import (
	"maps"
	"sync"
	"time"
)

const (
	// overviewPause is the minimum time between two overviews without a signal of a change. overviewAge is
	// the maximum age of an overview without changes.
	overviewPause = 500 * time.Millisecond
	overviewAge   = 10 * time.Second
)

// cache is the last overview. The holder of its lock creates the next one while others wait.
type cache struct {
	sync.Mutex
	made              time.Time
	count, generation uint64
	summary           Summary
	top               Top
	// lost are the keys of SetLost.
	lost map[string]bool
}

// Overview returns the overview of the fleet. It is created at most a few times a second.
func (f *Fleet) Overview() Overview {
	now := time.Now()
	s, top := f.overview.get(f, now)
	progress, since := f.Progress(), now.Add(-f.options.Keep)
	if progress.Since.After(since) {
		since = progress.Since
	}

	return Overview{Progress: progress, Summary: s, Top: top, History: f.log.Points(since, now), Webhooks: f.webhooks.all()}
}

// get returns the expensive parts of the overview.
func (c *cache) get(f *Fleet, now time.Time) (Summary, Top) {
	c.Lock()
	defer c.Unlock()
	count, generation := f.changes.count.Load(), f.changes.generation.Load() // before the data is read
	age := now.Sub(c.made)
	if !c.made.IsZero() && age < overviewAge && (count == c.count || generation == c.generation && age < overviewPause) {
		return c.summary, c.top
	}
	c.summary = f.nodes.Summary(f.options.Version, now)
	c.summary.SetLost(c.lost)
	c.top = f.log.Top("", c.summary.Failing, now)
	c.made, c.count, c.generation = now, count, generation

	return c.summary, c.top
}

// Unassigned returns the keys that reachable nodes run without an assignment, with the revisions: see Summary.
func (f *Fleet) Unassigned() map[string]uint64 {
	s := f.nodes.Summary(f.options.Version, time.Now())

	return s.Revisions()
}

// SetLost sets the keys of Unassigned that the bucket lost.
func (f *Fleet) SetLost(lost map[string]bool) {
	f.overview.Lock()
	defer f.overview.Unlock()
	if !maps.Equal(f.overview.lost, lost) {
		f.overview.lost = lost
		f.note()
	}
}
