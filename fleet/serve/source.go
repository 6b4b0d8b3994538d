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
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/model/telemetry"
)

const (
	// maxAsked is the number of pages and API requests that read from NATS at the same time. A run has up to 128 MiB.
	maxAsked = 8
	// maxOwn is the number of these reads for one user. A search for an unknown run takes long.
	maxOwn = 3
	// maxChanges is the number of changes that are shown.
	maxChanges = 500
	// registeredFor is the lifetime of registrations in the cache.
	registeredFor = 3 * time.Second
)

// source reads data for pages that the view does not hold. It limits concurrent reads. Other reads wait until their
// contexts end, and return api.ErrBusy then.
type source struct {
	Store
	log   *slog.Logger
	quota *access.Quota
	// registrations caches the registered services, which may be many.
	registrations *ttlCache[[]registration.Registration]
	// answers caches the answers to requests.
	answers *ttlCache[view.Answers]
	// invalid logs registrations that cannot be read, with a rate limit because nodes write them.
	invalid telemetry.RateLimitedLog
}

func newSource(store Store, log *slog.Logger) *source {
	return &source{
		Store: store, log: log, quota: access.NewQuota("reads", maxAsked, maxOwn),
		registrations: newTTLCache[[]registration.Registration](registeredFor, 1), answers: newTTLCache[view.Answers](answersFor, maxAnswered),
	}
}

// through calls get once NATS can be reached and the user of the context may read.
func through[T any](ctx context.Context, s *source, get func() (T, error)) (none T, err error) {
	if err := s.Connection.Away(); err != nil {
		return none, fmt.Errorf("%w (%w)", api.ErrUnavailable, err)
	}
	leave, ok := s.quota.Wait(ctx, access.UserOf(ctx))
	if !ok {
		return none, api.ErrBusy
	}
	defer leave()

	return get()
}

// Facts returns the facts of a node as a document.
func (s *source) Facts(ctx context.Context, node string) (json.RawMessage, error) {
	return through(ctx, s, func() (json.RawMessage, error) { return s.Nodes.FactsDocument(ctx, node) })
}

// History returns the stored revisions of an assignment.
func (s *source) History(ctx context.Context, key string) ([]model.Entry, error) {
	return through(ctx, s, func() ([]model.Entry, error) { return s.Assignments.History(ctx, key) })
}

// Assigned returns the newest revisions of assignments. Many revisions of one target do not displace revisions of others.
func (s *source) Assigned(ctx context.Context) (all []model.Entry, more bool, err error) {
	all, err = through(ctx, s, func() (all []model.Entry, err error) {
		all, more, err = s.Assignments.Audit(ctx, maxChanges)
		return all, err
	})

	return all, more, err
}

// Control returns changes of pauses, labels and groups, none if the bucket does not exist.
func (s *source) Control(ctx context.Context) (all []model.Entry, more bool, err error) {
	all, err = through(ctx, s, func() (all []model.Entry, err error) {
		all, more, err = s.Store.Control.Changes(ctx, maxChanges)
		return all, err
	})
	if errors.Is(err, model.ErrNotProvisioned) {
		err = nil
	}

	return all, more, err
}

// Registrations returns the registered services, none if the stream does not exist. Requests within some seconds share
// one read. Callers must not change the result.
func (s *source) Registrations(ctx context.Context) ([]registration.Registration, error) {
	return s.registrations.Get(ctx, "", func(ctx context.Context) ([]registration.Registration, error) {
		all, err := through(access.ForAll(ctx), s, func() ([]registration.Registration, error) { return s.Store.Registrations.Services(ctx) })
		if errors.Is(err, registration.ErrInvalid) {
			s.invalid.Log(ctx, s.log, slog.LevelWarn, "invalid registrations left out", "error", err)
			err = nil
		}

		return all, err
	})
}

const (
	// maxTransactions is the maximum number of transactions of a run that are returned, maxRunBytes the maximum number
	// of bytes that are read to find them.
	maxTransactions = 1000
	maxRunBytes     = 64 << 20
	// beforeRun is how long before the start of a run, by the clock of the node, reading starts, because that clock may
	// be wrong.
	beforeRun = 10 * time.Minute
	// afterRun is how long after the summary of a run transactions may still be stored. The loss of a server can
	// reorder messages.
	afterRun = 2 * time.Minute
)

// Run returns a run with its transactions. It searches from the time in the run id, and then in all reports of the
// node, because the clock of the node may have been wrong.
func (s *source) Run(ctx context.Context, node, id string) (view.RunDetail, error) {
	return through(ctx, s, func() (view.RunDetail, error) { return s.readRun(ctx, node, id) })
}

func (s *source) readRun(ctx context.Context, node, id string) (view.RunDetail, error) {
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

func (s *source) findRun(ctx context.Context, node, id string, since time.Time) (view.RunDetail, error) {
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
