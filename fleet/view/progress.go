package view

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// completeness describes how complete a view is, without the parts that know it themselves.
type completeness struct {
	noted func()

	mu                sync.RWMutex
	lastRuns, history bool
	since             time.Time
	shares            fullShares
	truncated         truncated
	problems          map[string]string
	notice            string
}

func newCompleteness(keep time.Duration, noted func()) *completeness {
	return &completeness{noted: noted, shares: fullShares{keep: keep}, truncated: truncated{keep: keep}, problems: map[string]string{}}
}

// Progress returns how complete the view is.
func (f *Fleet) Progress() Progress { return f.progress("") }

// progress returns the progress for a node, or for an empty name for all.
func (f *Fleet) progress(node string) Progress {
	out := f.completeness.of(node)
	out.Nodes, out.BlindSince = f.nodes.IsComplete(), f.nodes.BlindSince()
	if invalid := f.log.Invalid(); invalid.Count > 0 {
		out.Incomplete = append(out.Incomplete, fmt.Sprintf("Messages of the stream of reports cannot be read, and are neither listed nor counted: %d; the last: %s", invalid.Count, invalid.Last))
	}

	return out
}

func (c *completeness) of(node string) Progress {
	c.mu.RLock()
	defer c.mu.RUnlock()
	now := time.Now()
	out := Progress{LastRuns: c.lastRuns, History: c.history, Since: c.since, Problems: []string{}, Notice: c.notice, Incomplete: append(c.truncated.missing(now), c.shares.missing(node, now)...)}
	for _, about := range slices.Sorted(maps.Keys(c.problems)) {
		out.Problems = append(out.Problems, c.problems[about])
	}

	return out
}

// change changes the progress and records a change.
func (c *completeness) change(by func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if by() {
		c.noted()
	}
}

// Problem sets the reason why the view may be outdated, one text for each subject, until Clear.
func (c *completeness) Problem(about, text string) {
	text = firstLine(text, maxText)
	c.change(func() bool {
		before, is := c.problems[about]
		c.problems[about] = text
		return !is || before != text
	})
}

// Clear removes a Problem.
func (c *completeness) Clear(about string) {
	c.change(func() bool {
		_, is := c.problems[about]
		delete(c.problems, about)
		return is
	})
}

// SetNotice sets the notice of the view; empty removes it. The view stays current.
func (c *completeness) SetNotice(text string) {
	text = firstLine(text, maxText)
	c.change(func() bool {
		before := c.notice
		c.notice = text
		return before != text
	})
}

// SetLastRuns records that the newest run of each node and outcome is known.
func (c *completeness) SetLastRuns() {
	c.change(func() bool {
		c.lastRuns = true
		return true
	})
}

// SetSince says that all reports are known that were stored since a time, and with all every one
// that is stored.
func (c *completeness) SetSince(since time.Time, all bool) {
	c.change(func() bool {
		c.since, c.history = since, all
		return true
	})
}

// truncated is the start time of the read part of the past, zero if all of it was read.
type truncated struct {
	keep  time.Duration
	since time.Time
}

// SetTruncated records that only reports stored since a time were read. Earlier reports are missing until
// their retention time ends.
func (c *completeness) SetTruncated(since time.Time) {
	c.change(func() bool {
		c.since, c.history = since, true
		c.truncated.since = since
		return true
	})
}

// missing describes the missing part in at most one line.
func (t truncated) missing(now time.Time) []string {
	if t.since.IsZero() || now.Sub(t.since) >= t.keep {
		return nil
	}

	return []string{"There are more reports than are read of the past: those before " + t.since.UTC().Format("2006-01-02 15:04 MST") + " are neither listed nor counted."}
}
