package outbox

import (
	"errors"
	"io"

	"github.com/musterfleet/muster/model"
)

// Next gives the oldest reports that are not acknowledged, at most max of them,
// without taking them out. None means that nothing waits.
func (b *Outbox) Next(max int) []model.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		reports, again := b.onDisk(max)
		if len(reports) > 0 || !again {
			b.handed = b.handed[:0]
			for _, r := range reports {
				b.handed = append(b.handed, r.Seq)
			}
			return b.withEvent(reports, max)
		}
	}
}

// onDisk gives the next reports of the first segment, those in memory where
// there are none on disk. again means that a segment was given up.
func (b *Outbox) onDisk(max int) (reports []model.Report, again bool) {
	s := b.segments[0]
	records, err := s.read(b.offset)
	switch {
	case errors.Is(err, io.EOF):
		if b.failing {
			return decode(b.buffer, max, ^uint64(0)), false
		}
		return nil, false
	case err == nil:
		if reports = decode(records, max, b.synced); len(reports) > 0 || records[0].seq > b.synced {
			return reports, false
		}
	}
	b.opts.Log.Error("a part of the outbox cannot be read, it is given up", "file", s.path, "error", err)

	return nil, b.giveUp(s)
}

// decode gives the first reports of records, as far as they are durable.
func decode(records []record, max int, synced uint64) []model.Report {
	var out []model.Report
	for _, r := range records[:min(max, len(records))] {
		report, err := r.report()
		if err != nil || r.seq > synced {
			break
		}
		out = append(out, report)
	}

	return out
}

// giveUp drops what is left of the first segment.
func (b *Outbox) giveUp(s *segment) bool {
	b.lose(max(s.first, b.acked+1), s.last)
	if len(b.segments) == 1 {
		if err := b.roll(); err != nil {
			return false
		}
	}
	if err := b.dropFirst(); err != nil {
		b.opts.Log.Error("a part of the outbox cannot be removed", "error", err)
		return false
	}
	_ = b.sync() // what fails is kept in memory, and logged

	return true
}

// Ack takes out all reports up to and including seq.
func (b *Outbox) Ack(seq uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq >= b.next {
		return nil
	}
	b.tell(seq)

	return errors.Join(b.ack(seq), b.settleLedger())
}

// ack moves on behind seq.
func (b *Outbox) ack(seq uint64) error {
	if seq <= b.acked {
		return nil
	}
	for len(b.buffer) > 0 && b.buffer[0].seq <= seq {
		b.unbuffer()
	}
	b.acked = seq
	// First said, then removed: a kill in between only leaves a file.
	err := b.cursor.write(seq)

	return errors.Join(err, b.advance(seq))
}

// advance moves the offset behind seq, and removes what is done with.
func (b *Outbox) advance(seq uint64) error {
	for {
		s := b.segments[0]
		if s.last > seq {
			return b.skip(s, seq)
		}
		b.offset, b.passed = s.size, s.records
		if len(b.segments) == 1 {
			if s.size < b.segmentBytes {
				return nil
			}
			if err := b.roll(); err != nil {
				return err
			}
		}
		if err := b.dropFirst(); err != nil {
			return err
		}
	}
}

// skip moves the offset within a segment.
func (b *Outbox) skip(s *segment, seq uint64) error {
	for {
		records, err := s.read(b.offset)
		if err != nil {
			// Next finds the same, and gives the segment up.
			return nil
		}
		for _, r := range records {
			if r.seq > seq {
				return nil
			}
			b.offset += r.size()
			b.passed++
		}
	}
}

// dropFirst removes the first segment, which is not the active one.
func (b *Outbox) dropFirst() error {
	s := b.segments[0]
	b.segments, b.bytes, b.offset, b.passed = b.segments[1:], b.bytes-s.size, int64(len(magic)), 0

	return s.remove()
}
