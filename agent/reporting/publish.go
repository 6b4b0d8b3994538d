package reporting

import (
	"cmp"
	"slices"

	"github.com/musterfleet/muster/model"
)

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

// read returns the report.
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

// ack takes out the reports up to and including seq.
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
