package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/outbox"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/schemas"
)

// nodeLoader resolves manifests for an agent, which is away from NATS at times.
func (a *app) nodeLoader(config agent.Config, store *kvstore.Store) *manifest.Loader {
	return manifest.NewLoader(manifest.Options{
		Types: a.types, Environ: environ(), MaxBytes: int64(config.ReadFileLimit),
		KV: agent.ObserveKV(store.KVGet), Object: store.Object, Unpack: a.unpackForRun,
		Registrations: agent.ObserveRegistrations(a.readRegistrations(func(context.Context) (*kvstore.Store, error) { return store, nil })),
	})
}

// publisher hands reports to the stream as CloudEvents.
type publisher struct {
	store *kvstore.Store
	node  string
}

// Publish stores reports in their order.
func (p publisher) Publish(ctx context.Context, reports []outbox.Report) (int, error) {
	batch := make([]kvstore.Outgoing, 0, len(reports))
	var refused error
	for _, r := range reports {
		event := kvstore.Event{
			ID: r.ID, Type: r.Protocol, Schema: schemas.ID(r.Protocol), Node: p.node, Time: r.Time, RunID: r.RunID, Manifest: r.Manifest, Revision: r.Revision,
			Digest: r.Digest, Cause: model.Cause(r.Cause), CorrelationID: r.CorrelationID, Seq: r.Seq, Data: r.Document,
		}
		data, err := event.Encode()
		if err != nil {
			// Those before it are still published; it is then the first of the next batch.
			refused = fmt.Errorf("%w: %w", agent.ErrUndeliverable, err)
			break
		}
		batch = append(batch, kvstore.Outgoing{Subject: p.store.Names().Report(p.node, r.Kind, r.Outcome), ID: r.ID, Data: data})
	}
	stored, err := p.store.PublishReports(ctx, batch)
	switch {
	case errors.Is(err, model.ErrTooLarge) || errors.Is(err, kvstore.ErrInvalidEvent):
		return stored, fmt.Errorf("%w: %w", agent.ErrUndeliverable, err)
	case err != nil:
		return stored, err
	default:
		return stored, refused
	}
}

// bundleSource gives bundles from the fleet's object store.
type bundleSource struct{ store *kvstore.Store }

// Bundle opens a bundle.
func (b bundleSource) Bundle(ctx context.Context, digest string) (io.ReadCloser, error) {
	return b.store.GetBundle(ctx, digest)
}

// stateStore keeps what a node says of itself.
type stateStore struct {
	store *kvstore.Store
	node  string
}

// PutState stores the state.
func (s stateStore) PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error {
	return s.store.PutState(ctx, s.node, state, ttl)
}

// State gives the state that is stored.
func (s stateStore) State(ctx context.Context) (model.NodeState, error) {
	record, err := s.store.State(ctx, s.node)

	return record.State, err
}

// PutFacts stores the facts.
func (s stateStore) PutFacts(ctx context.Context, facts model.Facts) error {
	return s.store.PutFacts(ctx, s.node, facts, 0)
}
