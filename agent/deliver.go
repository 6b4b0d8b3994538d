package agent

import (
	"context"
	"errors"
	"time"

	"github.com/musterfleet/muster/agent/outbox"
	"github.com/musterfleet/muster/model"
)

const (
	// batch is how many reports are handed over at a time.
	batch = 200
	// farewellTimeout bounds the last hand-over.
	farewellTimeout = 5 * time.Second
)

// deliver hands reports over as they come.
func (a *Agent) deliver(ctx context.Context) error {
	var wait backoff
	for ctx.Err() == nil {
		more, err := a.deliverOnce(ctx)
		switch {
		case err != nil:
			if more {
				wait.reset()
			}
			a.log.DebugContext(ctx, "reports cannot be handed over", "waiting", a.outbox.Len(), "error", err)
			a.pauseUnlessConnected(ctx, wait.next())
		case more:
			wait.reset()
		default:
			wait.reset()
			select {
			case <-ctx.Done():
			case <-a.outbox.Ready():
			case <-a.delivered:
			}
		}
	}

	return nil
}

// pauseUnlessConnected waits for d, shorter when NATS is back.
func (a *Agent) pauseUnlessConnected(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-a.delivered:
	}
}

// deliverOnce hands over one batch. more means that some of one were taken.
func (a *Agent) deliverOnce(ctx context.Context) (more bool, err error) {
	reports := a.outbox.Next(batch)
	if len(reports) == 0 {
		return false, nil
	}
	stored, err := a.opts.Publisher.Publish(ctx, reports)
	if stored = min(max(stored, 0), len(reports)); stored > 0 {
		err = errors.Join(err, a.outbox.Ack(reports[stored-1].Seq))
	}
	if errors.Is(err, ErrUndeliverable) && stored < len(reports) {
		return true, a.giveUp(ctx, reports[stored], err)
	}

	return stored > 0, err
}

// giveUp takes a report out that would hold up all others for ever, and says so.
func (a *Agent) giveUp(ctx context.Context, r outbox.Report, cause error) error {
	a.log.ErrorContext(ctx, "a report is given up", "seq", r.Seq, "kind", r.Kind, "outcome", r.Outcome, "run_id", r.RunID, "error", cause)
	if r.Kind != outbox.KindNode || r.Outcome != string(model.NodeDropped) {
		if _, err := a.outbox.Append(a.droppedReport(r.Seq, r.Seq, 1)); err != nil {
			return err
		}
		if err := a.outbox.Sync(); err != nil {
			return err
		}
	}

	return a.outbox.Ack(r.Seq)
}

// farewell hands over what is left, and the last state, as far as that is
// quickly done.
func (a *Agent) farewell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewellTimeout)
	defer cancel()
	err := a.guard("handing over the last reports", func() error {
		for more := true; more; {
			var err error
			if more, err = a.deliverOnce(ctx); err != nil {
				return err
			}
		}
		state := a.State()
		state.Event = model.NodeStopped

		return a.opts.States.PutState(ctx, state, a.Config().StateTTL.Std())
	})
	if err != nil {
		a.log.Warn("not all could be handed over, the rest follows with the next start", "waiting", a.outbox.Len(), "error", err)
	}
}
