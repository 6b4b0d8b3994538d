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
	// PublishReports stores reports in order and returns how many reports from the start are stored.
	// The error belongs to the next report; it wraps model.ErrUndeliverable if retrying cannot help. A
	// report may be published twice.
	PublishReports(ctx context.Context, reports []model.Report) (stored int, err error)
	// PublishBatch stores reports of one run as one message. After an error it is unknown whether they
	// are stored. The error wraps model.ErrUndeliverable if retrying the batch cannot help.
	PublishBatch(ctx context.Context, reports []model.Report) error
}

// Backlog holds the waiting reports; *Outbox implements it.
type Backlog interface {
	// Next returns the oldest waiting reports, at most most of them, without removing them.
	Next(most int) []model.Report
	// Ack removes the published reports up to and including seq. Drop removes reports that no server
	// accepts.
	Ack(seq uint64) error
	Drop(seq uint64) error
	// Sync makes all appended reports available to Next.
	Sync() error
	Len() int
	// Ready receives a value when there may be reports to publish.
	Ready() tasks.Signal
}

// Delivery publishes the reports of an outbox.
type Delivery struct {
	Outbox    Backlog
	Publisher Publisher
	Node      string
	// MaxBatch returns the maximum size of a batch in bytes.
	MaxBatch func() int
	// Connected wakes the delivery after a reconnect to NATS. Drained is notified when the outbox is
	// empty.
	Connected, Drained tasks.Signal
	// Failed is called with each error of the publisher, and with nil after it recovered; nil is not called.
	Failed func(error)
	Log    *slog.Logger
}

// Run publishes reports until ctx ends. It logs the start and the end of a failure.
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
				// A restored connection may fail at first; do not wait for minutes again.
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

// once publishes the first waiting reports. more reports whether others may wait.
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

// next returns the reports to publish first and whether they form a batch. It waits until the batch
// cannot grow: otherwise a retry could publish a different batch.
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

// grows waits until new reports cannot join the batch, and reports whether new ones arrived in the
// interval.
func (d *Delivery) grows(ctx context.Context, reports []model.Report) bool {
	if tasks.Pause(ctx, min(time.Until(reports[0].Time.Add(2*batchSpan)), 2*batchSpan), d.Outbox.Ready()) || ctx.Err() != nil {
		return true
	}
	_ = d.Outbox.Sync() // it logs why it cannot

	return len(d.Outbox.Next(maxReports)) != len(reports)
}

// drop removes a report that blocks all others, and logs it.
func (d *Delivery) drop(ctx context.Context, r model.Report, cause error) error {
	d.Log.ErrorContext(ctx, "report dropped", "seq", r.Seq, "kind", r.Kind, "outcome", r.Outcome, "run_id", r.RunID, "error", cause)
	if r.Kind == model.KindNode && r.Outcome == model.Outcome(model.NodeDropped) {
		return d.Outbox.Ack(r.Seq)
	}

	return d.Outbox.Drop(r.Seq)
}

// Flush publishes the remaining reports and then calls last, both within flushTimeout.
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

const (
	// batchSpan is how much time the reports of a batch span: it delays them by as much.
	batchSpan = time.Second
	// maxEnvelope is what a report in a batch has beside its document, its node and its
	// manifest.
	maxEnvelope = 1 << 10
)

// first returns how many of the waiting reports are published first, and whether
// these are a batch. It depends on the reports alone, from the first one on, so that
// after a kill the same reports make the same batch, which the server knows. open
// reports that the batch may become longer: nothing waits behind it yet.
func first(reports []model.Report, most int) (n int, batch, open bool) {
	if len(reports) == 0 || !reports[0].Batch {
		for n < len(reports) && !reports[n].Batch {
			n++
		}
		return n, false, false
	}
	for size := 0; n < len(reports); n++ {
		r := &reports[n]
		size += len(r.Data) + len(r.Node) + len(r.Manifest) + maxEnvelope
		if joins := r.Batch && r.RunID == reports[0].RunID && r.Time.Sub(reports[0].Time) <= batchSpan; n > 0 && (!joins || size > most) {
			break
		}
	}

	return n, n > 1, n == len(reports) && n < maxReports
}
