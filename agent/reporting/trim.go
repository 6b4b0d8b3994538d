package reporting

import "slices"

// maxBuffered bounds the bytes of reports in memory while the disk takes none.
const maxBuffered = 4 << 20

// trim drops reports when there are more bytes than allowed, an eighth at a
// time, so that it does not happen for every report.
func (q *queue) trim() {
	if q.unwritable.failing {
		q.trimMemory()
		return
	}
	if most := q.maxBytes; q.store.bytes() > most {
		q.store.shrink(most - most/8)
		q.drop(func(e entry) bool { return e.segment.dropped })
	}
}

// trimMemory drops reports that the disk does not take where there are too many:
// the summaries of stable runs first, and never the newest.
func (q *queue) trimMemory() {
	buffered := q.waiting[q.written():]
	excess := -int64(maxBuffered)
	for _, e := range buffered {
		excess += e.size
	}
	var out []uint64
	for c := range classes {
		for _, e := range buffered {
			if excess > 0 && e.class == c && e.seq+1 < q.next {
				out = append(out, e.seq)
				excess -= e.size
			}
		}
	}
	q.drop(func(e entry) bool { return slices.Contains(out, e.seq) })
}

// drop drops what waits and matches: the notice becomes durable, then the files go.
func (q *queue) drop(matches func(entry) bool) {
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(e entry) bool {
		if !matches(e) {
			return false
		}
		if e.segment != nil {
			e.segment.waiting--
		}
		q.notice.add(e.seq, e.seq)
		return true
	})
	if dropped := before - len(q.waiting); dropped > 0 {
		q.log.Warn("reports dropped", "reports", dropped)
		q.flush()
		q.ready.Notify()
	}
}
