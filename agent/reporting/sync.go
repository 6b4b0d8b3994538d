package reporting

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
)

// syncEvery is how old a report of a long run may become before it is synced and
// published.
const syncEvery = time.Second

// syncer makes the reports of a queue durable with begin, syncAll and end. Other goroutines may use
// the queue during syncAll.
type syncer struct {
	// due is notified when a sync is wanted.
	due tasks.Signal
	// begun is the time of the last begin. unsynced tracks sync errors. The caller that has the queue
	// guards both.
	begun    time.Time
	unsynced outage
}

func newSyncer(log *slog.Logger) *syncer {
	return &syncer{due: tasks.NewSignal(), begun: time.Now(), unsynced: outage{log: log}}
}

// isDue reports whether the last sync is older than syncEvery.
func (s *syncer) isDue() bool { return time.Since(s.begun) > syncEvery }

// begin writes the buffered reports and returns the segments to sync.
func (s *syncer) begin(q *queue) []syncing {
	s.begun = time.Now()
	q.flush()

	return q.store.unsynced()
}

// end records the result of a sync and notifies Ready. It ignores errors of segments that were
// dropped, or that another sync made durable, in the interval: their files may be removed.
func (s *syncer) end(q *queue, all []syncing) (err error) {
	defer q.ready.Notify()
	for _, done := range all {
		if done.err == nil {
			done.segment.durable = max(done.segment.durable, done.last)
		} else if !done.segment.dropped && done.segment.durable < done.last {
			err = errors.Join(err, done.err)
		}
	}
	s.unsynced.note(err, "cannot sync the outbox; reports are kept back, will retry")
	if q.unwritable.failing {
		err = errors.Join(err, fmt.Errorf("the disk takes nothing, %d reports are in memory", len(q.waiting)-q.written()))
	}
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}

	return nil
}

// syncing is a segment that is synced up to a report, while others are appended.
type syncing struct {
	segment *segment
	last    uint64
	err     error
}

// unsynced returns the segments with reports that are not durable.
func (s *store) unsynced() (all []syncing) {
	for _, tail := range s.tails {
		if tail != nil && tail.last != tail.durable {
			all = append(all, syncing{segment: tail, last: tail.last})
		}
	}

	return all
}

// syncAll needs no lock: a file may be closed concurrently.
func syncAll(all []syncing) {
	for i := range all {
		all[i].err = all[i].segment.file.Sync()
	}
}
