package fleetcmd

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/model"
)

const (
	// completeTime is how long the results of nodes that did not finish may be read.
	completeTime = 5 * time.Second
	// readApart is of how many nodes the reports are selected by node; of more all are read.
	readApart = 64
	// followAgain is the pause before results are followed again, where they cannot be read.
	followAgain = 5 * time.Second
)

// Completer completes what came of a request by the results that nodes reported otherwise than in
// an answer: such as one whose agent was ended and started again meanwhile.
type Completer struct {
	Store *kvstore.Store
	// Protocol is that of the answers, see request.NewResults.
	Protocol string
	Log      *slog.Logger
	// OnAnswer, if set, gets each result that is found.
	OnAnswer func(model.EnsureResponse)
}

// Complete adds the results of the nodes that did not finish the request with an id, as far as the
// stream of reports has them. Where it cannot be read they stay unfinished.
func (c Completer) Complete(ctx context.Context, id string, out *ask.Ensured) {
	if out == nil || len(out.Unfinished) == 0 || ctx.Err() != nil {
		return
	}
	ctx, done := context.WithTimeout(ctx, completeTime)
	defer done()
	results := ask.NewResults(id, c.Protocol, out.Unfinished)
	if err := c.read(ctx, filter(id, out.Unfinished, false), results, c.OnAnswer); err != nil {
		c.Log.Debug("cannot read the results of nodes that did not finish", "error", err)
	}
	out.Merge(results)
}

// Follow yields the results of some nodes as they are reported, until there are those of all or ctx ends. It is
// for request.Ensurer.Reported.
func (c Completer) Follow(id string) func(ctx context.Context, nodes []string) iter.Seq[model.EnsureResponse] {
	return func(ctx context.Context, nodes []string) iter.Seq[model.EnsureResponse] {
		return func(yield func(model.EnsureResponse) bool) {
			results := ask.NewResults(id, c.Protocol, nodes)
			ctx, done := context.WithCancel(ctx)
			defer done()
			for ctx.Err() == nil && !results.Complete() {
				err := c.read(ctx, filter(id, nodes, true), results, func(r model.EnsureResponse) {
					if ctx.Err() == nil && !yield(r) {
						done()
					}
				})
				if err == nil || ctx.Err() != nil {
					continue
				}
				c.Log.Debug("cannot follow the results of nodes that are working", "error", err)
				select {
				case <-ctx.Done():
				case <-time.After(followAgain):
				}
			}
		}
	}
}

// filter returns what selects the results of a request on some nodes.
func filter(id string, nodes []string, follow bool) reports.Filter {
	f := reports.Filter{Kind: model.KindEnsure, Since: sentAfter(id, time.Now()), Follow: follow}
	if len(nodes) <= readApart {
		f.Nodes = nodes
	}

	return f
}

// read adds reports to the results until these are complete, or there are no more.
func (c Completer) read(ctx context.Context, f reports.Filter, results *ask.Results, onAnswer func(model.EnsureResponse)) error {
	for report, err := range reports.New(c.Store).Reports(ctx, f) {
		if errors.Is(err, reports.ErrInvalidEvent) {
			continue
		}
		if err != nil {
			return err
		}
		if answer, isNew := results.Add(report); isNew && onAnswer != nil {
			onAnswer(answer)
		}
		if results.Complete() {
			return nil
		}
	}

	return nil
}
