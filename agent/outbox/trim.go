package outbox

import (
	"encoding/json"
	"os"
)

// trim drops reports when there are more bytes than allowed: the summaries of
// stable runs first, the oldest first, then whatever is oldest. An eighth is
// freed at a time, so that it is not done for every report. What is dropped is
// said before it is gone, so that no gap is ever without a report.
func (b *Outbox) trim() {
	if b.bytes <= b.opts.MaxBytes || b.failing {
		return
	}
	if err := b.trimTo(b.opts.MaxBytes - b.opts.MaxBytes/8); err != nil {
		b.opts.Log.Error("the outbox could not be trimmed", "error", err)
	}
}

func (b *Outbox) trimTo(target int64) error {
	// Only what is not written to any more is rewritten.
	if err := b.roll(); err != nil {
		return err
	}
	if err := b.trimStable(target); err != nil {
		b.opts.Log.Warn("the summaries of stable runs could not be taken out of the outbox, the oldest reports are dropped instead", "error", err)
	}

	return b.trimOldest(target)
}

// trimStable takes the summaries of stable runs out, segment by segment.
func (b *Outbox) trimStable(target int64) error {
	var chosen []*segment
	lost, left := span{}, b.bytes
	for _, s := range b.segments[:len(b.segments)-1] {
		if left <= target {
			break
		}
		if s.stable == 0 {
			continue
		}
		records, err := s.all()
		if err != nil {
			return err
		}
		freed := int64(0)
		for _, r := range records {
			if b.keeps(r) {
				continue
			}
			freed += r.size()
			if r.seq > b.acked {
				lost.add(r.seq, r.seq, 1)
			}
		}
		left -= freed
		chosen = append(chosen, s)
	}
	if err := b.announce(lost); err != nil {
		return err
	}
	for _, s := range chosen {
		if err := b.thin(s); err != nil {
			return err
		}
	}

	return nil
}

// keeps says that a record stays in a segment that is thinned out.
func (b *Outbox) keeps(r record) bool { return r.seq > b.acked && r.flags&flagStable == 0 }

// thin rewrites a segment without what is dropped and what is handed over.
func (b *Outbox) thin(s *segment) error {
	records, err := s.all()
	if err != nil {
		return err
	}
	kept := records[:0]
	for _, r := range records {
		if b.keeps(r) {
			kept = append(kept, r)
		}
	}
	before := s.size
	if err := s.rewrite(kept); err != nil {
		return err
	}
	if s == b.segments[0] {
		b.offset, b.passed = int64(len(magic)), 0
	}
	if len(kept) > 0 {
		b.bytes += s.size - before
		return nil
	}
	b.bytes -= before
	for i := range b.segments {
		if b.segments[i] == s {
			b.segments = append(b.segments[:i:i], b.segments[i+1:]...)
			break
		}
	}

	return nil
}

// trimOldest removes whole segments.
func (b *Outbox) trimOldest(target int64) error {
	lost, left, n := span{}, b.bytes, 0
	for _, s := range b.segments[:len(b.segments)-1] {
		if left <= target {
			break
		}
		n++
		left -= s.size
		b.countLost(s, &lost)
	}
	if err := b.announce(lost); err != nil {
		return err
	}
	for range n {
		if err := b.dropFirst(); err != nil {
			return err
		}
	}

	return nil
}

// countLost adds what a segment holds to a span, and what its reports about
// dropped ones say.
func (b *Outbox) countLost(s *segment, lost *span) {
	records, err := s.all()
	if err != nil {
		// What cannot be read is lost as well.
		lost.add(max(s.first, b.acked+1), s.last, s.records)
	}
	for _, r := range records {
		if r.seq <= b.acked {
			continue
		}
		lost.add(r.seq, r.seq, 1)
		if r.flags&flagDropped != 0 {
			var said struct {
				Document struct {
					From uint64 `json:"dropped_from"`
					To   uint64 `json:"dropped_to"`
				} `json:"document"`
			}
			if json.Unmarshal(r.payload, &said) == nil && said.Document.To > 0 {
				lost.add(said.Document.From, said.Document.To, 0)
			}
		}
	}
}

// announce makes a report about dropped ones durable.
func (b *Outbox) announce(lost span) error {
	if lost.to == 0 {
		return nil
	}
	b.opts.Log.Warn("the outbox is full, reports are dropped", "reports", lost.reports, "from", lost.from, "to", lost.to)
	if _, err := b.append(b.opts.Dropped(lost.from, lost.to, lost.reports)); err != nil {
		return err
	}

	return b.sync()
}

// reportLost reports what was lost otherwise.
func (b *Outbox) reportLost() {
	if b.lost.to == 0 || b.failing {
		return
	}
	lost := b.lost
	b.lost = span{}
	if _, err := b.append(b.opts.Dropped(lost.from, lost.to, lost.reports)); err != nil {
		b.opts.Log.Error("reports were lost", "from", lost.from, "to", lost.to, "error", err)
	}
}

// boundBuffer bounds what is kept in memory while the disk takes nothing.
func (b *Outbox) boundBuffer() {
	for b.buffered > maxBuffered && len(b.buffer) > 1 {
		at := 0
		for i, r := range b.buffer {
			if r.flags&flagStable != 0 {
				at = i
				break
			}
		}
		r := b.buffer[at]
		b.lost.add(r.seq, r.seq, 1)
		b.buffered -= r.size()
		b.buffer = append(b.buffer[:at:at], b.buffer[at+1:]...)
	}
}

// all gives the records of a whole segment.
func (s *segment) all() ([]record, error) {
	data, err := os.ReadFile(s.path)
	if err != nil {
		return nil, err
	}
	if len(data) < len(magic) {
		return nil, errDamaged
	}
	records, _, err := parseRecords(data[len(magic):], 0)

	return records, err
}
