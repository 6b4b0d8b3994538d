package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/agent/outbox"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/schemas"
)

const (
	// maxReports is how many reports are published at a time.
	maxReports = 200
	// flushTimeout bounds the last delivery.
	flushTimeout = 5 * time.Second
)

// delivery publishes the reports of the outbox.
type delivery struct {
	outbox    *outbox.Outbox
	publisher Publisher
	node      string
	// maxBatch returns how long a batch may be.
	maxBatch func() int
	// connected wakes it when NATS can be reached again; drained is notified when
	// nothing waits any more.
	connected, drained tasks.Signal
	log                *slog.Logger
}

// run publishes reports as they come, until ctx ends. That it cannot is logged
// when it begins and when it is over.
func (d *delivery) run(ctx context.Context) error {
	var wait tasks.Backoff
	failing := false
	for ctx.Err() == nil {
		more, err := d.once(ctx)
		if err == nil || more {
			wait.Reset()
		}
		if err != nil {
			if !failing && ctx.Err() == nil {
				d.log.WarnContext(ctx, "cannot publish reports; buffered, will retry", "waiting", d.outbox.Len(), "error", err)
				failing = true
			}
			if tasks.Pause(ctx, wait.Next(), d.connected) {
				// What is back may need a moment yet, but not the minutes of a long outage.
				wait.Reset()
			}
			continue
		}
		if failing {
			d.log.InfoContext(ctx, "publishing reports again", "waiting", d.outbox.Len())
			failing = false
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-d.outbox.Ready():
		case <-d.connected:
		}
	}

	return nil
}

// once publishes the first reports that wait. more is that some may be left.
func (d *delivery) once(ctx context.Context) (more bool, err error) {
	reports := d.outbox.Next(maxReports)
	for i := range reports {
		reports[i].Node, reports[i].Schema = d.node, schemas.ID(reports[i].Type)
	}
	n, batch, open := next(reports, d.maxBatch())
	if n == 0 {
		return false, nil
	}
	if open && d.grows(ctx, reports) {
		return true, nil
	}
	reports = reports[:n]
	stored := 0
	if batch {
		if err = d.publisher.PublishBatch(ctx, reports); err == nil {
			stored = n
		}
	}
	if !batch || errors.Is(err, model.ErrUndeliverable) {
		stored, err = d.publisher.PublishReports(ctx, reports)
	}
	if stored = min(max(stored, 0), n); stored > 0 {
		err = errors.Join(err, d.outbox.Ack(reports[stored-1].Seq))
		if d.outbox.Len() == 0 {
			d.drained.Notify()
		}
	}
	if errors.Is(err, model.ErrUndeliverable) && stored < n {
		return true, d.drop(ctx, reports[stored], err)
	}

	return stored > 0, err
}

// grows waits until a batch is of another second than what comes next, and reports
// whether it became longer: then it is not published as it is, or it would be
// published as two different batches when it comes again.
func (d *delivery) grows(ctx context.Context, reports []model.Report) bool {
	if tasks.Pause(ctx, min(time.Until(reports[0].Time.Add(2*batchSpan)), 2*batchSpan), d.outbox.Ready()) || ctx.Err() != nil {
		return true
	}
	_ = d.outbox.Sync() // it logs why it cannot

	return len(d.outbox.Next(maxReports)) != len(reports)
}

// drop removes a report that would hold up all others, and logs it.
func (d *delivery) drop(ctx context.Context, r model.Report, cause error) error {
	d.log.ErrorContext(ctx, "report dropped", "seq", r.Seq, "kind", r.Kind, "outcome", r.Outcome, "run_id", r.RunID, "error", cause)
	if r.Kind == model.KindNode && r.Outcome == model.Outcome(model.NodeDropped) {
		return d.outbox.Ack(r.Seq)
	}

	return d.outbox.Drop(r.Seq)
}

// flush publishes what is left, and then calls last, as far as that is quickly
// done.
func (d *delivery) flush(ctx context.Context, last func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	err := tasks.Guard(d.log, "publishing the last reports", func() error {
		for more := true; more; {
			var err error
			if more, err = d.once(ctx); err != nil {
				return err
			}
		}

		return last(ctx)
	})
	if err != nil {
		d.log.Warn("cannot publish all reports; buffered until the next start", "waiting", d.outbox.Len(), "error", err)
	}
}
