package reporting

import (
	"cmp"
	"errors"
	"slices"

	"github.com/musterfleet/muster/model"
)

type entry struct {
	seq   uint64
	class class
	// segment has it at offset; without one memory has it.
	segment      *segment
	offset, size int64
	memory       *record
}

func bySeq(a, b entry) int { return cmp.Compare(a.seq, b.seq) }

// written returns how many of the waiting reports the disk has: the first ones.
func (b *Outbox) written() int {
	n := len(b.waiting)
	for n > 0 && b.waiting[n-1].segment == nil {
		n--
	}

	return n
}

// flush writes buffered reports and the notice, and removes finished segments. After a write error the
// reports stay in memory.
func (b *Outbox) flush() {
	b.unwritable.note(b.write(), "cannot write to the outbox; buffered in memory, will retry")
	if err := b.store.removeFinished(!b.notice.stale); err != nil {
		b.log.Warn("cannot remove published or dropped reports", "error", err)
	}
}

func (b *Outbox) write() error {
	for i := b.written(); i < len(b.waiting); i++ {
		e := &b.waiting[i]
		seg, offset, err := b.store.append(e.class, *e.memory, b.maxBytes/segmentCount)
		if err != nil {
			b.unwritable.failed(e.size)
			return err
		}
		b.unwritable.wrote(e.size)
		e.segment, e.offset, e.memory = seg, offset, nil
		seg.waiting++
	}

	return b.store.writeNotice(&b.notice)
}

// load reads the waiting reports. Damaged reports are lost and reported as dropped.
func (b *Outbox) load() (err error) {
	s := b.store
	if b.notice, err = s.readNotice(); err != nil {
		b.log.Error("notice of dropped reports damaged", "file", s.noticePath(), "error", err)
	}
	var unknown error
	if b.acked, unknown = s.acknowledged(); len(s.segments) == 0 {
		unknown = s.acknowledge(b.acked)
	}
	if unknown != nil {
		b.log.Error("cursor damaged; publishing reports again", "file", s.cursor.Name(), "error", unknown)
	}
	err = nil
	for _, seg := range s.segments {
		err = errors.Join(err, seg.load(func(r record, offset int64) {
			if r.seq > b.acked && !b.notice.Gone.has(r.seq) {
				b.waiting = append(b.waiting, entry{seq: r.seq, class: seg.class, segment: seg, offset: offset, size: r.size()})
				seg.waiting++
			}
		}))
		if seg.damaged {
			b.log.Error("outbox segment damaged", "file", seg.file.Name())
		}
	}
	slices.SortFunc(b.waiting, bySeq)
	b.next = max(b.acked, s.last(), b.notice.Gone.last()) + 1
	if unknown == nil {
		b.noteGaps()
	}

	return err
}

// noteGaps notes the reports that are missing: damage took them, or a power
// failure one of the files.
func (b *Outbox) noteGaps() {
	after := b.acked
	for _, e := range b.waiting {
		b.notice.add(after+1, e.seq-1)
		after = e.seq
	}
	b.notice.add(after+1, b.next-1)
}

// read returns the first reports that are durable, and the damaged ones before
// and among them. While the disk takes nothing it returns those in memory too.
func (b *Outbox) read(max int) (reports []model.Report, damaged []entry) {
	for _, e := range b.waiting {
		inMemory := e.segment == nil
		if len(reports) == max || inMemory && !b.unwritable.failing || !inMemory && e.seq > e.segment.durable {
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
func (b *Outbox) withEvent(reports []model.Report, max int) []model.Report {
	seq, ok := b.notice.position()
	at, _ := slices.BinarySearchFunc(reports, seq, func(r model.Report, seq uint64) int { return cmp.Compare(r.Seq, seq) })
	if !ok || at == len(reports) && at > 0 {
		return reports
	}
	b.notice.publish(b.report)
	b.flush() // so that the event is the same after a kill
	reports = slices.Insert(reports, at, *b.notice.Event)

	return reports[:min(max, len(reports))]
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

// maxBuffered bounds the bytes of reports in memory while the disk takes none.
const maxBuffered = 4 << 20

// trim drops reports when there are more bytes than allowed, an eighth at a
// time, so that it does not happen for every report.
func (b *Outbox) trim() {
	if b.unwritable.failing {
		b.trimMemory()
		return
	}
	if most := b.maxBytes; b.store.bytes() > most {
		b.store.shrink(most - most/8)
		b.drop(func(e entry) bool { return e.segment.dropped })
	}
}

// trimMemory drops reports that the disk does not take where there are too many:
// the summaries of stable runs first, and never the newest.
func (b *Outbox) trimMemory() {
	buffered := b.waiting[b.written():]
	excess := -int64(maxBuffered)
	for _, e := range buffered {
		excess += e.size
	}
	var out []uint64
	for c := range classes {
		for _, e := range buffered {
			if excess > 0 && e.class == c && e.seq+1 < b.next {
				out = append(out, e.seq)
				excess -= e.size
			}
		}
	}
	b.drop(func(e entry) bool { return slices.Contains(out, e.seq) })
}

// drop drops what waits and matches: the notice becomes durable, then the files go.
func (b *Outbox) drop(matches func(entry) bool) {
	before := len(b.waiting)
	b.waiting = slices.DeleteFunc(b.waiting, func(e entry) bool {
		if !matches(e) {
			return false
		}
		if e.segment != nil {
			e.segment.waiting--
		}
		b.notice.add(e.seq, e.seq)
		return true
	})
	if dropped := before - len(b.waiting); dropped > 0 {
		b.log.Warn("reports dropped", "reports", dropped)
		b.flush()
		b.ready.Notify()
	}
}
