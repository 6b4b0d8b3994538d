package reporting

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// queue is an Outbox in memory.
type deliveryQueue struct{ waiting []model.Report }

func (q *deliveryQueue) Next(int) []model.Report { return q.waiting }
func (q *deliveryQueue) Ack(uint64) error        { q.waiting = nil; return nil }
func (q *deliveryQueue) Drop(uint64) error       { return errors.New("a report was dropped") }
func (q *deliveryQueue) Sync() error             { return nil }
func (q *deliveryQueue) Len() int                { return len(q.waiting) }
func (q *deliveryQueue) Ready() tasks.Signal     { return nil }

// fullStore is a Publisher that refuses reports until a time.
type fullStore struct {
	until time.Time
	tried []time.Time
}

func (s *fullStore) PublishReports(_ context.Context, reports []model.Report) (int, error) {
	s.tried = append(s.tried, time.Now())
	if time.Now().Before(s.until) {
		return 0, errors.New("no room in JetStream")
	}

	return len(reports), nil
}

func (s *fullStore) PublishBatch(context.Context, []model.Report) error {
	return errors.New("one report is no batch")
}

// TestFullStoreIsTriedAgain has a store that is full for an hour. The agent gets no event when the store has room again.
func TestFullStoreIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fullStore{until: time.Now().Add(time.Hour)}
		outbox := &deliveryQueue{[]model.Report{{Seq: 1, Type: model.ProtocolRun}}}
		d := &Delivery{Outbox: outbox, Publisher: store, Node: "web01", MaxBatch: func() int { return 1 << 10 }, Drained: tasks.NewSignal(), Log: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = d.Run(ctx) }()
		<-d.Drained
		for i, at := range store.tried[1:] {
			if wait := at.Sub(store.tried[i]); wait > maxWait {
				t.Errorf("try %d came after %s", i+2, wait)
			}
		}
		if late := time.Since(store.until); late > maxWait || outbox.Len() > 0 {
			t.Errorf("published %s after the store had room, %d reports wait", late, outbox.Len())
		}
	})
}
