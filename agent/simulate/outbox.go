package simulate

import (
	"slices"
	"sync"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// outbox stores the reports of a node in memory until they are published.
type outbox struct {
	// skew is the offset of the node's clock, backlog the number of reports that it never publishes.
	skew    time.Duration
	backlog int
	ready   tasks.Signal
	// added is called with each report.
	added func()

	mu      sync.Mutex
	waiting []model.Report
	seq     uint64
}

// newOutbox returns an empty outbox. The sequence of a later outbox of the same node is higher.
func newOutbox(s *Script, added func()) *outbox {
	return &outbox{skew: s.Skew, backlog: s.Backlog, ready: tasks.NewSignal(), added: added, seq: uint64(time.Now().UnixMicro())}
}

// Append adds a report, with the time and the id of the node's clock.
func (b *outbox) Append(r model.Report) (uint64, error) {
	if b.skew != 0 {
		r.Time = r.Time.Add(b.skew)
		id, err := ksuid.NewRandomWithTime(r.Time)
		if err != nil {
			return 0, err
		}
		r.ID = id.String()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seq++
	r.Seq = b.seq
	b.waiting = append(b.waiting, r)
	b.added()

	return r.Seq, nil
}

// Sync wakes the delivery.
func (b *outbox) Sync() error {
	b.ready.Notify()

	return nil
}

// SyncSoon is Sync.
func (b *outbox) SyncSoon() { b.ready.Notify() }

// Next returns at most most of the oldest reports.
func (b *outbox) Next(most int) []model.Report {
	b.mu.Lock()
	defer b.mu.Unlock()

	return slices.Clone(b.waiting[:min(most, len(b.waiting))])
}

// Ack removes the reports up to a sequence number.
func (b *outbox) Ack(seq uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < len(b.waiting) && b.waiting[n].Seq <= seq {
		n++
	}
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}

	return nil
}

// Drop is Ack.
func (b *outbox) Drop(seq uint64) error { return b.Ack(seq) }

// Len returns the number of reports that are not yet published.
func (b *outbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return len(b.waiting)
}

// shown returns Len plus the backlog.
func (b *outbox) shown() int { return b.Len() + b.backlog }

// Ready receives a value when there may be reports to publish.
func (b *outbox) Ready() tasks.Signal { return b.ready }
