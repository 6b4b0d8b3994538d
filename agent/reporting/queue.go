package reporting

import (
	"cmp"
	"log/slog"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// queue has the reports that wait, and writes them to the disk. It is for one goroutine at
// a time.
type queue struct {
	store    *store
	maxBytes int64
	// waiting are the reports that are not acknowledged, in order; those that the
	// disk did not take come last.
	waiting []entry
	// next is the seq of the next report, acked the last acknowledged one.
	next, acked uint64
	notice      notice
	// published are the reports that the last first returned.
	published []uint64
	// unwritable tracks write errors of the disk.
	unwritable outage
	// dropped is Options.Dropped.
	dropped func(Lost) model.Report
	// ready is notified when there may be reports to publish.
	ready tasks.Signal
	log   *slog.Logger
}

// entry is a report that waits.
type entry struct {
	seq   uint64
	class class
	// segment has it at offset; without one memory has it.
	segment      *segment
	offset, size int64
	memory       *record
}

func bySeq(a, b entry) int { return cmp.Compare(a.seq, b.seq) }

// append assigns a seq to a report and writes it. It returns an error if the report cannot be encoded.
func (q *queue) append(r model.Report) (seq uint64, err error) {
	r.Seq = q.next
	rec, err := encode(&r)
	if err != nil {
		return 0, err
	}
	q.next++
	q.waiting = append(q.waiting, entry{seq: r.Seq, class: classOf(&r), size: rec.size(), memory: &rec})
	q.flush()
	q.trim()

	return r.Seq, nil
}

// written returns how many of the waiting reports the disk has: the first ones.
func (q *queue) written() int {
	n := len(q.waiting)
	for n > 0 && q.waiting[n-1].segment == nil {
		n--
	}

	return n
}

// flush writes buffered reports and the notice, and removes finished segments. After a write error the
// reports stay in memory.
func (q *queue) flush() {
	q.unwritable.note(q.write(), "cannot write to the outbox; buffered in memory, will retry")
	if err := q.store.removeFinished(!q.notice.stale); err != nil {
		q.log.Warn("cannot remove published or dropped reports", "error", err)
	}
}

func (q *queue) write() error {
	for i := q.written(); i < len(q.waiting); i++ {
		e := &q.waiting[i]
		seg, offset, err := q.store.append(e.class, *e.memory, q.maxBytes/segmentCount)
		if err != nil {
			q.unwritable.failed(e.size)
			return err
		}
		q.unwritable.wrote(e.size)
		e.segment, e.offset, e.memory = seg, offset, nil
		seg.waiting++
	}

	return q.store.writeNotice(&q.notice)
}
