package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/model/telemetry"
)

// source reads what pages need and the view does not keep.
type source struct {
	Store
	log *slog.Logger
	// invalid logs a few of the registrations that cannot be read: nodes write them.
	invalid *telemetry.RateLimitedLog
}

func newSource(store Store, log *slog.Logger) source {
	return source{Store: store, log: log, invalid: &telemetry.RateLimitedLog{}}
}

// Facts returns the document of the facts of a node.
func (s source) Facts(ctx context.Context, node string) (json.RawMessage, error) {
	return s.Nodes.FactsDocument(ctx, node)
}

// History returns the revisions of an assignment that the bucket has.
func (s source) History(ctx context.Context, key string) ([]model.Entry, error) {
	return s.Assignments.History(ctx, key)
}

// Assigned returns the newest revisions of assignments, of which those of one target do not displace all others.
func (s source) Assigned(ctx context.Context) ([]model.Entry, bool, error) {
	return s.Assignments.Audit(ctx, maxChanges)
}

// maxChanges is of how many of the last changes about nodes those are shown that are kept.
const maxChanges = 500

// Control returns what operators wrote about nodes; where nothing can be written, nothing.
func (s source) Control(ctx context.Context) ([]model.Entry, bool, error) {
	all, more, err := s.Store.Control.Changes(ctx, maxChanges)
	if errors.Is(err, model.ErrNotProvisioned) {
		err = nil
	}

	return all, more, err
}

// Registrations returns what nodes registered; where nothing can be registered, nothing.
func (s source) Registrations(ctx context.Context) ([]registration.Registration, error) {
	all, err := s.Store.Registrations.Services(ctx)
	if errors.Is(err, registration.ErrInvalid) {
		s.invalid.Log(ctx, s.log, slog.LevelWarn, "invalid registrations left out", "error", err)
		err = nil
	}

	return all, err
}

const (
	// maxTransactions is how many transactions of a run are returned, maxRunBytes how much is
	// read to find them.
	maxTransactions = 1000
	maxRunBytes     = 64 << 20
	// beforeRun is how long before a run, by the clock of its node, reading begins, for a clock
	// that is somewhat wrong.
	beforeRun = 10 * time.Minute
	// afterRun is how long after its summary transactions of a run may be stored: a server that is
	// lost can have them overtaken.
	afterRun = 2 * time.Minute
)

// Run returns a run with its transactions. It is looked for where its id says that it began, and
// then, since the clock of the node may have been wrong, in all that the stream has of the node.
func (s source) Run(ctx context.Context, node, id string) (view.RunDetail, error) {
	began, err := ksuid.Parse(id)
	if err != nil || model.CheckNode(node, nil) != nil {
		return view.RunDetail{}, fmt.Errorf("run %q of node %q: %w", id, node, model.ErrNotFound)
	}
	for _, since := range []time.Time{began.Time().Add(-beforeRun), {}} {
		d, err := s.findRun(ctx, node, id, since)
		if err != nil || d.Run != nil || len(d.Transactions) > 0 {
			return d, err
		}
	}

	return view.RunDetail{}, fmt.Errorf("run %s of node %s: %w", id, node, model.ErrNotFound)
}

// findRun reads the reports of a node since a time until some time after the summary of a run.
func (s source) findRun(ctx context.Context, node, id string, since time.Time) (view.RunDetail, error) {
	out, read := view.RunDetail{Node: node, Transactions: []model.Transaction{}}, 0
	var found []model.Report
	var ended time.Time
	known := map[string]bool{}
	for m, err := range s.Reports.Messages(ctx, model.ReportRange{Node: node, Since: since}) {
		if err != nil {
			return out, err
		}
		for _, r := range m.Reports {
			if r.RunID != id || known[r.ID] {
				continue
			}
			known[r.ID] = true
			found = append(found, r)
			if r.Type == model.ProtocolRun || r.Type == model.ProtocolEnsureResponse {
				ended = m.Stored
			}
		}
		if read += m.Size; read > maxRunBytes || !ended.IsZero() && m.Stored.Sub(ended) > afterRun {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b model.Report) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range found {
		addReport(&out, r)
	}

	return out, nil
}

// addReport adds a report of a run.
func addReport(d *view.RunDetail, r model.Report) {
	var t model.Transaction
	if r.Type == model.ProtocolEnsureResponse {
		var answer model.EnsureResponse
		if json.Unmarshal(r.Data, &answer) == nil && answer.State != nil {
			d.Request, d.Transactions = r.CorrelationID, append(d.Transactions, *answer.State)
		}
		return
	}
	switch {
	case r.Type == model.ProtocolRun:
		var run model.Run
		if json.Unmarshal(r.Data, &run) == nil {
			d.Run = &run
		}
	case r.Type != model.ProtocolTransaction || json.Unmarshal(r.Data, &t) != nil:
	case len(d.Transactions) < maxTransactions:
		d.Transactions = append(d.Transactions, t)
	default:
		d.More++
	}
}
