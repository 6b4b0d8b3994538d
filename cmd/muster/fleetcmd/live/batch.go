package live

import (
	"context"
	"fmt"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/batch"
	"github.com/musterfleet/muster/fleet/request"
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
func (b *Batches) Limits() (*batch.Limits, error) {
	if b.size == "" {
		if b.maxFailures != "" {
			return nil, cli.Usagef("--max-failures stops between batches: give --batch too")
		}
		return nil, nil
	}
	size, err := batch.ParseAmount(b.size)
	if err == nil && size == (batch.Amount{}) {
		err = fmt.Errorf("%q: a batch has at least one node", b.size)
	}
	if err != nil {
		return nil, cli.Usagef("--batch %w", err)
	}
	out := &batch.Limits{Size: size}
	if b.maxFailures != "" {
		most, err := batch.ParseAmount(b.maxFailures)
		if err != nil {
			return nil, cli.Usagef("--max-failures %w", err)
		}
		out.MaxFailures = &most
	}

	return out, nil
}

// Send has send ask the targets: all at once, or the nodes among them in batches where there are
// limits. part says which batch it is, in words before others.
func Send(ctx context.Context, to Aimed, by *batch.Limits, send func(ctx context.Context, part string, list []fleet.Target) (*request.Ensured, error)) (*request.Ensured, error) {
	if by == nil {
		return send(ctx, "", to.List)
	}

	return batch.Send(ctx, request.NodesOf(to.List, to.Known), *by, func(ctx context.Context, b batch.Batch) (*request.Ensured, error) {
		return send(ctx, fmt.Sprintf("batch %d of %d: ", b.Number, b.Of), fleet.Targets(b.Nodes, nil, false))
	})
}
