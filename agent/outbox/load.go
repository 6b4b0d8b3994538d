package outbox

import (
	"errors"
	"slices"
)

// load reads what waits. Damage costs what is damaged, and is reported.
func (b *Outbox) load() (err error) {
	s := b.store
	if b.notice, err = s.readNotice(); err != nil {
		b.opts.Log.Error("notice of dropped reports damaged", "file", s.noticePath(), "error", err)
	}
	var unknown error
	if b.acked, unknown = s.acknowledged(); len(s.segments) == 0 {
		unknown = s.acknowledge(b.acked)
	}
	if unknown != nil {
		b.opts.Log.Error("cursor damaged; publishing reports again", "file", s.cursor.Name(), "error", unknown)
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
			b.opts.Log.Error("outbox segment damaged", "file", seg.file.Name())
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
