package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// maxCounts limits the counted kinds and outcomes, because nodes choose them.
const maxCounts = 200

// maxRepaired limits the repaired drift of one run, because nodes report it.
const maxRepaired = 100_000

// counts counts the messages since the view began. Counting older ones would look like a flood.
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

func (c *counts) message(m *model.StoredReports) {
	if m.Sequence > c.read {
		c.read, c.newest = m.Sequence, m.Stored
	}
	if m.Invalid != nil && c.isNew(m.Sequence) {
		c.unreadable++
	}
}

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

// Totals counts the messages of the stream since the view began, and the unread messages.
type Totals struct {
	// Reports are counted once each, by kind and outcome.
	Reports []ReportCount
	// Unreadable counts the messages that could not be read as a whole.
	Unreadable uint64
	// Repaired counts repairs of drift.
	Repaired uint64
	// Behind is the number of unread messages of the stream.
	Behind uint64
	// Newest is the time when the server stored the newest read message, zero for none.
	Newest time.Time
}

// ReportCount is the number of reports of a kind and outcome.
type ReportCount struct {
	Kind    string
	Outcome model.Outcome
	Count   uint64
}

// intervals is the number of intervals of the retention time.
const intervals = 288

type points struct {
	every time.Duration
	// ring[number % len(ring)] contains the counts of the interval with that number.
	ring [intervals + 1]point
}

// point is a Point with the number of its interval, counted from 1970.
type point struct {
	number int64
	Point
}

func newPoints(keep time.Duration) points { return points{every: max(keep/intervals, time.Second)} }

func (p *points) number(at time.Time) int64 { return at.UnixNano() / int64(p.every) }

func (p *points) add(at time.Time, t *excerpt) {
	number := p.number(at)
	in := &p.ring[uint64(number)%uint64(len(p.ring))]
	switch {
	case in.number > number:
		return // too old
	case in.number < number:
		*in = point{number: number}
	}
	in.Runs++
	in.Repaired += t.repaired
	switch {
	case t.Outcome.IsFailure():
		in.Failed++
	case t.Outcome == model.OutcomeChanged:
		in.Changed++
	}
}

func (p *points) get(since, now time.Time) []Point {
	last := p.number(now)
	first := max(p.number(since), last-intervals+1)
	out := make([]Point, 0, max(last-first+1, 0))
	for number := first; number <= last; number++ {
		one := Point{At: time.Unix(0, number*int64(p.every)).UTC()}
		if in := p.ring[uint64(number)%uint64(len(p.ring))]; in.number == number {
			at := one.At
			one = in.Point
			one.At = at
		}
		out = append(out, one)
	}

	return out
}
