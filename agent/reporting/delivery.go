package reporting

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/schemas"
)

const (
	// maxReports is how many reports are published at a time.
	maxReports = 200
	// maxWait bounds the wait between two tries: the server sends no event when a full store has room again.
	maxWait = 10 * time.Second
	// flushTimeout bounds the last delivery.
	flushTimeout = 5 * time.Second
)

// Publisher stores reports in the stream.
type Publisher interface {
	// PublishReports stores reports in their order, and returns how many of the first
	// are stored for certain. The error is that of the first that is not, and wraps
	// model.ErrUndeliverable when it never will be. The same report may come again.
	PublishReports(ctx context.Context, reports []model.Report) (stored int, err error)
	// PublishBatch stores reports of one run as one message: all, or none for certain.
	// The error wraps model.ErrUndeliverable when they never will be stored like this.
	PublishBatch(ctx context.Context, reports []model.Report) error
}

// Outbox has the reports that wait; *outbox.Outbox is one.
type Backlog interface {
	// Next returns the oldest waiting reports, at most a number of them, and leaves them in.
	Next(most int) []model.Report
	// Ack takes out the reports up to and including a seq: they are published. Drop does it
	// for those that no server takes.
	Ack(seq uint64) error
	Drop(seq uint64) error
	// Sync has Next return all that were appended.
	Sync() error
	// Len returns how many reports wait.
	Len() int
	// Ready receives a value when there may be reports to publish.
	Ready() tasks.Signal
}

// Delivery publishes the reports of an outbox.
type Delivery struct {
	Outbox    Backlog
	Publisher Publisher
	Node      string
	// MaxBatch returns how long a batch may be.
	MaxBatch func() int
	// Connected wakes it when NATS can be reached again; Drained is notified when
	// nothing waits any more.
	Connected, Drained tasks.Signal
	// Failed is called with each error of the publisher, and with nil after it recovered; nil is not called.
	Failed func(error)
	Log    *slog.Logger
}

// Run publishes reports as they come, until ctx ends. That it cannot is logged
// when it begins and when it is over.
func (d *Delivery) Run(ctx context.Context) error {
	var wait tasks.Backoff
	failing := false
	for ctx.Err() == nil {
		more, err := d.once(ctx)
		if err == nil || more {
			wait.Reset()
		}
		if err != nil {
			if !failing && ctx.Err() == nil {
				d.Log.WarnContext(ctx, "cannot publish reports; buffered, will retry", "waiting", d.Outbox.Len(), "error", err)
				failing = true
			}
			if ctx.Err() == nil {
				d.failed(err)
			}
			if tasks.Pause(ctx, min(wait.Next(), maxWait), d.Connected) {
				// What is back may need a moment yet, but not the minutes of a long outage.
				wait.Reset()
			}
			continue
		}
		if failing {
			d.Log.InfoContext(ctx, "publishing reports again", "waiting", d.Outbox.Len())
			failing = false
			d.failed(nil)
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-d.Outbox.Ready():
		case <-d.Connected:
		}
	}

	return nil
}

func (d *Delivery) failed(err error) {
	if d.Failed != nil {
		d.Failed(err)
	}
}

// once publishes the first reports that wait. more is that some may be left.
func (d *Delivery) once(ctx context.Context) (more bool, err error) {
	reports, batch, err := d.next(ctx)
	if len(reports) == 0 {
		return false, err
	}
	stored := 0
	if batch {
		if err = d.Publisher.PublishBatch(ctx, reports); err == nil {
			stored = len(reports)
		}
	}
	if !batch || errors.Is(err, model.ErrUndeliverable) {
		stored, err = d.Publisher.PublishReports(ctx, reports)
	}
	if stored = min(max(stored, 0), len(reports)); stored > 0 {
		err = errors.Join(err, d.Outbox.Ack(reports[stored-1].Seq))
		if d.Outbox.Len() == 0 {
			d.Drained.Notify()
		}
	}
	if errors.Is(err, model.ErrUndeliverable) && stored < len(reports) {
		return true, d.drop(ctx, reports[stored], err)
	}

	return stored > 0, err
}

// next returns the reports that are published first, and whether these are a
// batch. It waits until a batch cannot grow any more, or it would be published as
// two different ones when it comes again.
func (d *Delivery) next(ctx context.Context) ([]model.Report, bool, error) {
	for {
		reports := d.Outbox.Next(maxReports)
		for i := range reports {
			reports[i].Node, reports[i].Schema = d.Node, schemas.ID(reports[i].Type)
		}
		n, batch, open := first(reports, d.MaxBatch())
		if !open || !d.grows(ctx, reports) {
			return reports[:n], batch, nil
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
	}
}

// grows waits until a batch is of another second than what comes next, and reports
// whether more came meanwhile.
func (d *Delivery) grows(ctx context.Context, reports []model.Report) bool {
	if tasks.Pause(ctx, min(time.Until(reports[0].Time.Add(2*batchSpan)), 2*batchSpan), d.Outbox.Ready()) || ctx.Err() != nil {
		return true
	}
	_ = d.Outbox.Sync() // it logs why it cannot

	return len(d.Outbox.Next(maxReports)) != len(reports)
}

// drop removes a report that would hold up all others, and logs it.
func (d *Delivery) drop(ctx context.Context, r model.Report, cause error) error {
	d.Log.ErrorContext(ctx, "report dropped", "seq", r.Seq, "kind", r.Kind, "outcome", r.Outcome, "run_id", r.RunID, "error", cause)
	if r.Kind == model.KindNode && r.Outcome == model.Outcome(model.NodeDropped) {
		return d.Outbox.Ack(r.Seq)
	}

	return d.Outbox.Drop(r.Seq)
}

// Flush publishes what is left, and then calls last, as far as that is quickly
// done.
func (d *Delivery) Flush(ctx context.Context, last func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	err := tasks.Guard(d.Log, "publishing the last reports", func() error {
		for more := true; more; {
			var err error
			if more, err = d.once(ctx); err != nil {
				return err
			}
		}

		return last(ctx)
	})
	if err != nil {
		d.Log.Warn("cannot publish all reports; buffered until the next start", "waiting", d.Outbox.Len(), "error", err)
	}
}
