package view

import (
	"cmp"
	"slices"
	"time"
)

// maxCounts limits the counted kinds and outcomes, because nodes choose them.
const maxCounts = 200

// maxRepaired limits the repaired drift of one run, because nodes report it.
const maxRepaired = 100_000

// counts counts the messages since the view began. Older messages would look like a flood.
type counts struct {
	begun            bool
	begin, end, read uint64
	newest           time.Time

	reports              map[ReportCount]uint64
	unreadable, repaired uint64
}

// SetEnd sets the sequence number of the newest message of the stream. Later messages are counted.
func (l *activityLog) SetEnd(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.counts
	if !c.begun || seq < c.begin {
		c.begun, c.begin, c.read = true, seq, min(c.read, seq) // the stream is new or was recreated
	}
	c.end = seq
}

// message counts a message of the stream.
func (c *counts) message(m *StreamMessage) {
	if m.Seq > c.read {
		c.read, c.newest = m.Seq, m.Stored
	}
	if m.Invalid != nil && c.isNew(m.Seq) {
		c.unreadable++
	}
}

// report counts a new report.
func (c *counts) report(t *excerpt, seq uint64) {
	if !c.isNew(seq) {
		return
	}
	c.repaired += uint64(min(t.repaired, maxRepaired))
	id := ReportCount{Kind: t.Kind, Outcome: t.Outcome}
	if _, known := c.reports[id]; known || len(c.reports) < maxCounts {
		c.reports[id]++
	}
}

func (c *counts) isNew(seq uint64) bool { return c.begun && seq > c.begin }

// Totals returns the counts since the view began.
func (l *activityLog) Totals() Totals {
	l.mu.RLock()
	defer l.mu.RUnlock()
	c := &l.counts
	out := Totals{Unreadable: c.unreadable, Repaired: c.repaired, Behind: c.end - min(c.end, c.read), Newest: c.newest}
	for of, n := range c.reports {
		of.Count = n
		out.Reports = append(out.Reports, of)
	}
	slices.SortFunc(out.Reports, func(a, b ReportCount) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Outcome, b.Outcome))
	})

	return out
}
