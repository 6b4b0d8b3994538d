package outbox

import (
	"slices"

	"github.com/musterfleet/muster/model"
)

// maxRanges bounds the ranges of an event; beyond it those that are closest
// become one. The count stays exact.
const maxRanges = 1000

// Lost are reports that were dropped: how many, and their numbers in order.
type Lost struct {
	Reports int              `json:"reports"`
	Ranges  []model.SeqRange `json:"ranges,omitempty"`
}

func (l Lost) clone() Lost { return Lost{l.Reports, slices.Clone(l.Ranges)} }

// has says that a number is within a range.
func (l Lost) has(seq uint64) bool {
	at := l.from(seq)

	return at < len(l.Ranges) && l.Ranges[at].From <= seq
}

// from gives the place of the first range that ends at seq or behind it.
func (l Lost) from(seq uint64) int {
	at, _ := slices.BinarySearchFunc(l.Ranges, seq, func(r model.SeqRange, seq uint64) int {
		if r.To < seq {
			return -1
		}
		return 1
	})

	return at
}

// add takes a range in, joined with those it touches.
func (l *Lost) add(from, to uint64, reports int) {
	l.Reports += reports
	at := l.from(max(from, 1) - 1)
	end := at
	for end < len(l.Ranges) && l.Ranges[end].From <= to+1 {
		from, to = min(from, l.Ranges[end].From), max(to, l.Ranges[end].To)
		end++
	}
	l.Ranges = slices.Replace(l.Ranges, at, end, model.SeqRange{From: from, To: to})
}

// remove takes a range out.
func (l *Lost) remove(from, to uint64, reports int) {
	l.Reports -= reports
	var out []model.SeqRange
	for _, r := range l.Ranges {
		if r.To < from || r.From > to {
			out = append(out, r)
			continue
		}
		if r.From < from {
			out = append(out, model.SeqRange{From: r.From, To: from - 1})
		}
		if r.To > to {
			out = append(out, model.SeqRange{From: to + 1, To: r.To})
		}
	}
	l.Ranges = out
}

// join takes others in.
func (l *Lost) join(other Lost) {
	for _, r := range other.Ranges {
		l.add(r.From, r.To, 0)
	}
	l.Reports += other.Reports
	l.bound()
}

// bound joins the ranges with the smallest gaps where there are too many.
func (l *Lost) bound() {
	excess := len(l.Ranges) - maxRanges
	if excess <= 0 {
		return
	}
	gaps := make([]uint64, 0, len(l.Ranges)-1)
	for i, r := range l.Ranges[1:] {
		gaps = append(gaps, r.From-l.Ranges[i].To)
	}
	slices.Sort(gaps)
	widest, out := gaps[excess-1], l.Ranges[:1]
	for _, r := range l.Ranges[1:] {
		last := &out[len(out)-1]
		if excess > 0 && r.From-last.To <= widest {
			last.To = r.To
			excess--
			continue
		}
		out = append(out, r)
	}
	l.Ranges = out
}
