package reporting

import (
	"slices"

	"github.com/musterfleet/muster/model"
)

// maxRanges bounds the ranges of an event; beyond it those that are closest
// become one. The count stays exact.
const maxRanges = 1000

// Lost are reports that were dropped: how many, and their seqs in order.
type Lost struct {
	Reports int              `json:"reports"`
	Ranges  []model.SeqRange `json:"ranges,omitempty"`
}

// has reports whether a seq is within a range.
func (l *Lost) has(seq uint64) bool {
	at := l.position(seq)

	return at < len(l.Ranges) && l.Ranges[at].From <= seq
}

// position returns the index of the first range that ends at seq or behind it.
func (l *Lost) position(seq uint64) int {
	at, _ := slices.BinarySearchFunc(l.Ranges, seq, func(r model.SeqRange, seq uint64) int {
		if r.To < seq {
			return -1
		}
		return 1
	})

	return at
}

// last returns the last seq that is in, 0 where none is.
func (l *Lost) last() uint64 {
	if len(l.Ranges) == 0 {
		return 0
	}

	return l.Ranges[len(l.Ranges)-1].To
}

// add adds a range that does not overlap others, and joins it with adjacent ranges.
func (l *Lost) add(from, to uint64) {
	l.Reports += int(to - from + 1)
	at := l.position(max(from, 1) - 1)
	end := at
	for end < len(l.Ranges) && l.Ranges[end].From <= to+1 {
		from, to = min(from, l.Ranges[end].From), max(to, l.Ranges[end].To)
		end++
	}
	l.Ranges = slices.Replace(l.Ranges, at, end, model.SeqRange{From: from, To: to})
}

// remove removes a seq, and reports whether it was present.
func (l *Lost) remove(seq uint64) bool {
	if !l.has(seq) {
		return false
	}
	at := l.position(seq)
	r := l.Ranges[at]
	var rest []model.SeqRange
	if r.From < seq {
		rest = append(rest, model.SeqRange{From: r.From, To: seq - 1})
	}
	if seq < r.To {
		rest = append(rest, model.SeqRange{From: seq + 1, To: r.To})
	}
	l.Ranges = slices.Replace(l.Ranges, at, at+1, rest...)
	l.Reports--

	return true
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
