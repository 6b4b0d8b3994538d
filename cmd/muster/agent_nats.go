package main

import (
	"context"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/kvstore"
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
