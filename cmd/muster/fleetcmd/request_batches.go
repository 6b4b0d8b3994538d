package fleetcmd

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"

	"github.com/musterfleet/muster/kvstore"
)

// Batches are the flags of a request that is sent in batches.
type Batches struct{ size, maxFailures string }

// AddBatches adds the flags.
func (b *Batches) AddBatches(cmd *fisk.CmdClause) {
	cmd.Flag("batch", "Ask this many nodes at a time, a number or a percentage: the next ones when these have ended").PlaceHolder("N|P%").StringVar(&b.size)
	cmd.Flag("max-failures", "With --batch: ask no further nodes once more than this many failed or did not answer").PlaceHolder("N|P%").StringVar(&b.maxFailures)
}

// HasBatches reports whether the request is sent in batches.
func (b *Batches) HasBatches() bool { return b.size != "" }

// Limits returns those that the flags set, nil without --batch. The error is one of usage.
func (b *Batches) Limits() (*ask.BatchLimits, error) {
	if b.size == "" {
		if b.maxFailures != "" {
			return nil, cli.Usagef("--max-failures stops between batches: give --batch too")
		}
		return nil, nil
	}
	size, err := ask.ParseAmount(b.size)
	if err == nil && size == (ask.Amount{}) {
		err = fmt.Errorf("%q: a batch has at least one node", b.size)
	}
	if err != nil {
		return nil, cli.Usagef("--batch %w", err)
	}
	out := &ask.BatchLimits{Size: size}
	if b.maxFailures != "" {
		most, err := ask.ParseAmount(b.maxFailures)
		if err != nil {
			return nil, cli.Usagef("--max-failures %w", err)
		}
		out.MaxFailures = &most
	}

	return out, nil
}

// Link is the connection on which batches are sent.
type Link struct {
	Store *kvstore.Store
	Log   *slog.Logger
	// Within is the time of a batch; for so long it waits for a connection that was lost.
	Within time.Duration
}

// SendRequest has send ask the targets: all at once, or the nodes among them in batches where there are
// limits. part says which batch it is, in words before others. No batch begins without a
// connection.
func SendRequest(ctx context.Context, link Link, to RequestSelection, by *ask.BatchLimits, send func(ctx context.Context, part string, list []fleet.Target) (*ask.Ensured, error)) (*ask.Ensured, error) {
	if by == nil {
		return send(ctx, "", to.List)
	}

	return ask.SendBatches(ctx, ask.NodesOf(to.List, to.Known), *by, func(ctx context.Context, b ask.Batch) (*ask.Ensured, error) {
		part := fmt.Sprintf("batch %d of %d", b.Number, b.Of)
		if err := link.await(ctx, part); err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return nil, err
		}
		return send(ctx, part+": ", fleet.Targets(b.Nodes, nil, false))
	})
}

// await waits for the connection, for as long as a batch may take.
func (l Link) await(ctx context.Context, part string) error {
	away := l.Store.Away()
	if away == nil {
		return nil
	}
	l.Log.Warn(part+" waits: not connected to NATS", "timeout", l.Within)
	ctx, done := context.WithTimeout(ctx, l.Within)
	defer done()
	if err := l.Store.AwaitConnection(ctx); err != nil {
		return fmt.Errorf("%s did not begin, not connected to NATS for %s: %w", part, l.Within, away)
	}

	return nil
}
