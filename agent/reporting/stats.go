package reporting

// Stats are figures of an outbox.
type Stats struct {
	// Reports counts the waiting reports, including events about dropped reports.
	Reports int
	// Bytes is what the files take, and the reports in memory while the disk takes
	// none; MaxBytes bounds the files.
	Bytes, MaxBytes int64
	// Dropped counts the reports that were dropped or found missing since Open.
	Dropped uint64
}

// Stats returns the figures of now.
func (b *Outbox) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.queue.stats()
}

func (q *queue) stats() Stats {
	s := Stats{Reports: len(q.waiting) + q.notice.count(), Bytes: q.store.bytes(), MaxBytes: q.maxBytes, Dropped: q.notice.dropped}
	for _, e := range q.waiting[q.written():] {
		s.Bytes += e.size
	}

	return s
}
