package outbox

import (
	"errors"
	"fmt"
	"time"
)

// syncing is a segment that is synced up to a report, while others are appended.
type syncing struct {
	segment *segment
	last    uint64
	err     error
}

// toSync writes what the disk does not have, and returns the segments to sync.
func (b *Outbox) toSync() (all []syncing) {
	b.syncedAt = time.Now()
	b.flush()
	for _, tail := range b.store.tails {
		if tail != nil && tail.last != tail.durable {
			all = append(all, syncing{segment: tail, last: tail.last})
		}
	}

	return all
}

// syncAll needs no lock: a file may be closed meanwhile.
func syncAll(all []syncing) {
	for i := range all {
		all[i].err = all[i].segment.file.Sync()
	}
}

// synced notes what was synced, and wakes whoever waits on Ready. A segment that was
// dropped meanwhile needs none, nor one that somebody else has synced: either may be
// removed already.
func (b *Outbox) synced(all []syncing) (err error) {
	defer b.ready.Notify()
	for _, s := range all {
		if s.err == nil {
			s.segment.durable = max(s.segment.durable, s.last)
		} else if !s.segment.dropped && s.segment.durable < s.last {
			err = errors.Join(err, s.err)
		}
	}
	b.logOnce(&b.unsynced, err, "cannot sync the outbox; reports are kept back, will retry")
	if b.failing {
		err = errors.Join(err, fmt.Errorf("the disk takes nothing, %d reports are in memory", len(b.waiting)-b.written()))
	}
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}

	return nil
}
