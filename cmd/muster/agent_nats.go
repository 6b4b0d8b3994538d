package main

import (
	"context"
	"io"
	"time"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// nodeLoader resolves manifests for an agent, which is away from NATS at times.
func (a *app) nodeLoader(config agent.Config, store *kvstore.Store) *manifest.Loader {
	return manifest.NewLoader(manifest.Options{
		Types: a.types, Environ: environ(), MaxBytes: int64(config.ReadFileLimit),
		KV: agent.ObserveKV(store.KVGet), Object: store.Object, Unpack: a.unpackForRun,
		Registrations: agent.ObserveRegistrations(a.readRegistrations(func(context.Context) (*kvstore.Store, error) { return store, nil })),
	})
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
