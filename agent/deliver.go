package agent

import (
	"context"
	"errors"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/schemas"
)

const (
	// batch is how many reports are handed over at a time.
	batch = 200
	// farewellTimeout bounds the last hand-over.
	farewellTimeout = 5 * time.Second
)

// deliver hands reports over as they come. That it cannot is logged when it
// begins and when it is over.
func (a *Agent) deliver(ctx context.Context) error {
	var wait tasks.Backoff
	stuck, handed := false, false
	for ctx.Err() == nil {
		more, err := a.deliverOnce(ctx)
		if err == nil || more {
			wait.Reset()
		}
		if err != nil {
			if !stuck && ctx.Err() == nil {
				a.log.WarnContext(ctx, "reports cannot be handed over, they are kept and it is tried again", "waiting", a.outbox.Len(), "error", err)
				stuck = true
			}
			if tasks.Pause(ctx, wait.Next(), a.reached.deliver) {
				// What is back may need a moment yet, but not the minutes of a long outage.
				wait.Reset()
			}
			continue
		}
		if stuck {
			a.log.InfoContext(ctx, "reports are handed over again", "waiting", a.outbox.Len())
			stuck = false
		}
		if more {
			handed = true
			continue
		}
		if handed {
			// Whoever looks at the node must not take what is handed over for waiting.
			a.said.Notify()
			handed = false
		}
		select {
		case <-ctx.Done():
		case <-a.outbox.Ready():
		case <-a.reached.deliver:
		}
	}

	return nil
}

// deliverOnce hands over one batch. more means that some of one were taken.
func (a *Agent) deliverOnce(ctx context.Context) (more bool, err error) {
	reports := a.outbox.Next(batch)
	if len(reports) == 0 {
		return false, nil
	}
	for i := range reports {
		reports[i].Node, reports[i].Schema = a.opts.Config.Node, schemas.ID(reports[i].Type)
	}
	stored, err := a.opts.Publisher.PublishReports(ctx, reports)
	if stored = min(max(stored, 0), len(reports)); stored > 0 {
		err = errors.Join(err, a.outbox.Ack(reports[stored-1].Seq))
	}
	if errors.Is(err, model.ErrUndeliverable) && stored < len(reports) {
		return true, a.giveUp(ctx, reports[stored], err)
	}

	return stored > 0, err
}

// giveUp takes a report out that would hold up all others for ever, and says so.
func (a *Agent) giveUp(ctx context.Context, r model.Report, cause error) error {
	a.log.ErrorContext(ctx, "a report is given up", "seq", r.Seq, "kind", r.Kind, "outcome", r.Outcome, "run_id", r.RunID, "error", cause)
	if r.Kind == model.KindNode && r.Outcome == model.Outcome(model.NodeDropped) {
		return a.outbox.Ack(r.Seq)
	}

	return a.outbox.Drop(r.Seq)
}

// farewell hands over what is left, and the last state, as far as that is
// quickly done.
func (a *Agent) farewell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewellTimeout)
	defer cancel()
	err := tasks.Guard(a.log, "handing over the last reports", func() error {
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
