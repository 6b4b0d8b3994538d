package reporting

import (
	"errors"
	"slices"
)

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
