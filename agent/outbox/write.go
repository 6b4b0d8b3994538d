package outbox

import "slices"

// written returns how many of the waiting reports the disk has: the first ones.
func (b *Outbox) written() int {
	n := len(b.waiting)
	for n > 0 && b.waiting[n-1].segment == nil {
		n--
	}

	return n
}

// flush writes what the disk does not have, reports and the notice, and removes
// what it need not have. What cannot be written stays in memory.
func (b *Outbox) flush() {
	b.logOnce(&b.failing, b.write(), "cannot write to the outbox; buffered in memory, will retry")
	if err := b.store.removeFinished(!b.notice.stale); err != nil {
		b.opts.Log.Warn("cannot remove published or dropped reports", "error", err)
	}
}

// logOnce logs an error of the disk when it begins and when it is over.
func (b *Outbox) logOnce(failing *bool, err error, event string) {
	if *failing == (err != nil) {
		return
	}
	if *failing = err != nil; *failing {
		b.opts.Log.Error(event, "error", err)
	} else {
		b.opts.Log.Info("outbox writable again")
	}
}

func (b *Outbox) write() error {
	for i := b.written(); i < len(b.waiting); i++ {
		e := &b.waiting[i]
		seg, offset, err := b.store.append(e.class, *e.memory, b.opts.MaxBytes/segmentCount)
		if err != nil {
			return err
		}
		e.segment, e.offset, e.memory = seg, offset, nil
		seg.waiting++
	}

	return b.store.writeNotice(&b.notice)
}

// trim drops reports when there are more bytes than allowed, an eighth at a
// time, so that it does not happen for every report.
func (b *Outbox) trim() {
	if b.failing {
		b.trimMemory()
		return
	}
	if most := b.opts.MaxBytes; b.store.bytes() > most {
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
		b.opts.Log.Warn("reports dropped", "reports", dropped)
		b.flush()
		b.ready.Notify()
	}
}
