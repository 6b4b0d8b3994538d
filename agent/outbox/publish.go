package outbox

import (
	"cmp"
	"slices"

	"github.com/musterfleet/muster/model"
)

// Next returns the oldest waiting reports, at most max of them, and leaves them
// in. None means that nothing waits, or that nothing is durable yet.
func (b *Outbox) Next(max int) []model.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	reports, damaged := b.read(max)
	if len(damaged) > 0 {
		b.opts.Log.Error("waiting reports damaged", "reports", len(damaged), "from", damaged[0].seq, "to", damaged[len(damaged)-1].seq)
		b.drop(func(e entry) bool {
			_, found := slices.BinarySearchFunc(damaged, e, bySeq)
			return found
		})
	}
	b.published = b.published[:0]
	for _, r := range reports {
		b.published = append(b.published, r.Seq)
	}

	return b.withEvent(reports, max)
}

// read returns the first reports that are durable, and the damaged ones before
// and among them. While the disk takes nothing it returns those in memory too.
func (b *Outbox) read(max int) (reports []model.Report, damaged []entry) {
	for _, e := range b.waiting {
		inMemory := e.segment == nil
		if len(reports) == max || inMemory && !b.failing || !inMemory && e.seq > e.segment.durable {
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
func (b *Outbox) withEvent(reports []model.Report, max int) []model.Report {
	seq, ok := b.notice.place()
	at, _ := slices.BinarySearchFunc(reports, seq, func(r model.Report, seq uint64) int { return cmp.Compare(r.Seq, seq) })
	if !ok || at == len(reports) && at > 0 {
		return reports
	}
	b.notice.publish(b.opts.Dropped)
	b.flush() // so that the event is the same after a kill
	reports = slices.Insert(reports, at, *b.notice.Event)

	return reports[:min(max, len(reports))]
}

// Ack takes out the reports up to and including seq: they are published.
func (b *Outbox) Ack(seq uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq >= b.next {
		return nil
	}

	return b.ack(seq)
}

func (b *Outbox) ack(seq uint64) (err error) {
	n, _ := slices.BinarySearchFunc(b.waiting, entry{seq: seq + 1}, bySeq)
	done := b.waiting[:n]
	arrived := slices.DeleteFunc(b.published, func(p uint64) bool {
		_, waits := slices.BinarySearchFunc(done, entry{seq: p}, bySeq)
		return waits || p > seq
	})
	b.published = nil
	b.notice.acknowledge(seq, arrived)
	for _, e := range done {
		if e.segment != nil {
			e.segment.waiting--
		}
	}
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil // frees what an outage took
	}
	if seq > b.acked {
		b.acked = seq
		err = b.store.acknowledge(seq)
	}
	b.flush()

	return err
}

// Drop takes out the reports up to seq, which no server takes. The event about
// dropped ones covers seq.
func (b *Outbox) Drop(seq uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq <= b.acked || seq >= b.next {
		return nil
	}
	b.published = nil
	b.drop(func(e entry) bool { return e.seq == seq })

	return b.ack(seq)
}
