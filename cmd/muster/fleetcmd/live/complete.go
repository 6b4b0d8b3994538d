package live

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/fleet/request"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/model"
)

const (
	// completeTime is how long the results of nodes that did not finish may be read.
	completeTime = 5 * time.Second
	// readApart is of how many nodes the reports are read node by node.
	readApart = 8
)

// Completer completes what came of a request by the results that nodes reported otherwise than in
// an answer: such as one whose agent was ended and started again meanwhile.
type Completer struct {
	Store *kvstore.Store
	Log   *slog.Logger
	// OnAnswer, if set, gets each result that is found.
	OnAnswer func(model.EnsureResponse)
}

// Complete adds the results of the nodes that did not finish the request with an id, as far as the
// stream of reports has them. Where it cannot be read they stay unfinished.
func (c Completer) Complete(ctx context.Context, id string, out *request.Ensured) {
	if out == nil || len(out.Unfinished) == 0 || ctx.Err() != nil {
		return
	}
	ctx, done := context.WithTimeout(ctx, completeTime)
	defer done()
	filters := []reports.Filter{{}}
	if len(out.Unfinished) <= readApart {
		filters = nil
		for _, node := range out.Unfinished {
			filters = append(filters, reports.Filter{Node: node})
		}
	}
	results := request.NewResults(id, out.Unfinished)
	for _, f := range filters {
		f.Kind, f.Since = model.KindEnsure, sentAfter(id, time.Now())
		if err := c.read(ctx, f, results); err != nil {
			c.Log.Debug("cannot read the results of nodes that did not finish", "error", err)
			break
		}
	}
	out.Merge(results)
}

// read adds what is stored to the results.
func (c Completer) read(ctx context.Context, f reports.Filter, results *request.Results) error {
	for report, err := range reports.New(c.Store).Reports(ctx, f) {
		if errors.Is(err, reports.ErrInvalidEvent) {
			continue
		}
		if err != nil {
			return err
		}
		if answer, isNew := results.Add(report); isNew && c.OnAnswer != nil {
			c.OnAnswer(answer)
		}
		if results.Complete() {
			return nil
		}
	}

	return nil
}
