package outbox

// Stats are figures of an outbox.
type Stats struct {
	// Reports is how many wait, those about dropped ones included.
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
	s := Stats{Reports: len(b.waiting) + b.notice.count(), Bytes: b.store.bytes(), MaxBytes: b.opts.MaxBytes, Dropped: b.notice.dropped}
	for _, e := range b.waiting[b.written():] {
		s.Bytes += e.size
	}

	return s
}
