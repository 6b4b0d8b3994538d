package reporting

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"

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
	published   []uint64
	unwritable  outage
	dropped     func(Lost) model.Report
	// ready is notified when there may be reports to publish.
	ready tasks.Signal
	log   *slog.Logger
}

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

// load reads the waiting reports. Damaged reports are lost and reported as dropped.
func (q *queue) load() (err error) {
	s := q.store
	if q.notice, err = s.readNotice(); err != nil {
		q.log.Error("notice of dropped reports damaged", "file", s.noticePath(), "error", err)
	}
	var unknown error
	if q.acked, unknown = s.acknowledged(); len(s.segments) == 0 {
		unknown = s.acknowledge(q.acked)
	}
	if unknown != nil {
		q.log.Error("cursor damaged; publishing reports again", "file", s.cursor.Name(), "error", unknown)
	}
	err = nil
	for _, seg := range s.segments {
		err = errors.Join(err, seg.load(func(r record, offset int64) {
			if r.seq > q.acked && !q.notice.Gone.has(r.seq) {
				q.waiting = append(q.waiting, entry{seq: r.seq, class: seg.class, segment: seg, offset: offset, size: r.size()})
				seg.waiting++
			}
		}))
		if seg.damaged {
			q.log.Error("outbox segment damaged", "file", seg.file.Name())
		}
	}
	slices.SortFunc(q.waiting, bySeq)
	q.next = max(q.acked, s.last(), q.notice.Gone.last()) + 1
	if unknown == nil {
		q.noteGaps()
	}

	return err
}

// noteGaps notes the reports that are missing: damage took them, or a power
// failure one of the files.
func (q *queue) noteGaps() {
	after := q.acked
	for _, e := range q.waiting {
		q.notice.add(after+1, e.seq-1)
		after = e.seq
	}
	q.notice.add(after+1, q.next-1)
}

// first returns the oldest waiting reports that are durable, at most max of them.
func (q *queue) first(max int) []model.Report {
	reports, damaged := q.read(max)
	if len(damaged) > 0 {
		q.log.Error("waiting reports damaged", "reports", len(damaged), "from", damaged[0].seq, "to", damaged[len(damaged)-1].seq)
		q.drop(func(e entry) bool {
			_, found := slices.BinarySearchFunc(damaged, e, bySeq)
			return found
		})
	}
	q.published = q.published[:0]
	for _, r := range reports {
		q.published = append(q.published, r.Seq)
	}

	return q.withEvent(reports, max)
}

// read returns the first reports that are durable, and the damaged ones before
// and among them. While the disk takes nothing it returns those in memory too.
func (q *queue) read(max int) (reports []model.Report, damaged []entry) {
	for _, e := range q.waiting {
		inMemory := e.segment == nil
		if len(reports) == max || inMemory && !q.unwritable.failing || !inMemory && e.seq > e.segment.durable {
			break
		}
		if r, err := e.read(); err == nil {
			reports = append(reports, r)
		} else {
			damaged = append(damaged, e)
		}
	}

	return reports, damaged
}

func (e entry) read() (model.Report, error) {
	if e.segment == nil {
		return e.memory.report()
	}
	line := make([]byte, e.size)
	_, err := e.segment.file.ReadAt(line, e.offset)
	var r record
	if err == nil {
		r, err = parseLine(line)
	}
	if err != nil {
		e.segment.damaged = true
		return model.Report{}, err
	}

	return r.report()
}

// withEvent puts the event about dropped reports in its place, once that is reached.
func (q *queue) withEvent(reports []model.Report, max int) []model.Report {
	seq, ok := q.notice.position()
	at, _ := slices.BinarySearchFunc(reports, seq, func(r model.Report, seq uint64) int { return cmp.Compare(r.Seq, seq) })
	if !ok || at == len(reports) && at > 0 {
		return reports
	}
	q.notice.publish(q.dropped)
	q.flush() // so that the event is the same after a kill
	reports = slices.Insert(reports, at, *q.notice.Event)

	return reports[:min(max, len(reports))]
}

func (q *queue) ack(seq uint64) (err error) {
	n, _ := slices.BinarySearchFunc(q.waiting, entry{seq: seq + 1}, bySeq)
	done := q.waiting[:n]
	arrived := slices.DeleteFunc(q.published, func(p uint64) bool {
		_, waits := slices.BinarySearchFunc(done, entry{seq: p}, bySeq)
		return waits || p > seq
	})
	q.published = nil
	q.notice.acknowledge(seq, arrived)
	for _, e := range done {
		if e.segment != nil {
			e.segment.waiting--
		}
	}
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil // frees what an outage took
	}
	if seq > q.acked {
		q.acked = seq
		err = q.store.acknowledge(seq)
	}
	q.flush()

	return err
}

// refuse takes out the reports up to seq, which is noted as dropped.
func (q *queue) refuse(seq uint64) error {
	q.published = nil
	q.drop(func(e entry) bool { return e.seq == seq })

	return q.ack(seq)
}

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
