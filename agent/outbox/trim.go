package outbox

import "os"

// trim drops reports when there are more bytes than allowed: the summaries of
// stable runs first, the oldest first, then whatever is oldest. An eighth is
// freed at a time, so that it is not done for every report. What is dropped is
// durable before it is gone, so that no gap is ever without an event.
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
	lost, left := Lost{}, b.bytes
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
	if err := b.dropping(lost); err != nil {
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
	lost, left, n := Lost{}, b.bytes, 0
	for _, s := range b.segments[:len(b.segments)-1] {
		if left <= target {
			break
		}
		n++
		left -= s.size
		b.countLost(s, &lost)
	}
	if err := b.dropping(lost); err != nil {
		return err
	}
	for range n {
		if err := b.dropFirst(); err != nil {
			return err
		}
	}

	return nil
}

// countLost adds what a segment holds to what is dropped.
func (b *Outbox) countLost(s *segment, lost *Lost) {
	records, err := s.all()
	if err != nil {
		// What cannot be read is lost as well.
		lost.add(max(s.first, b.acked+1), s.last, s.records)
	}
	for _, r := range records {
		if r.seq > b.acked {
			lost.add(r.seq, r.seq, 1)
		}
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
		b.lose(r.seq, r.seq)
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
