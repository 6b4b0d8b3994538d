package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// intervals is the number of intervals of the retention time.
const intervals = 288

// points counts reports by interval.
type points struct {
	every time.Duration
	// ring contains the counts of each interval at its number modulo the length.
	ring [intervals + 1]point
}

// point is a Point with the number of its interval, counted from 1970.
type point struct {
	number int64
	Point
}

func newPoints(keep time.Duration) points { return points{every: max(keep/intervals, time.Second)} }

func (p *points) number(at time.Time) int64 { return at.UnixNano() / int64(p.every) }

// add counts the summary of a run.
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

// get returns all intervals since a time.
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
