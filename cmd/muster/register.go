package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/registration"
)

// namesNATS says that a server or context of NATS was given.
func (a *app) namesNATS() bool {
	return slices.Contains(a.connectSet[:], true) || cmp.Or(a.connect.Context, a.connect.Creds, a.connect.NKey) != "" || len(a.connect.Servers) > 0
}

// register tells of what the resources of a run registered, once: nothing renews
// it after a command. That it cannot is told and fails nothing.
func (a *app) register(ctx context.Context, registered map[model.Ref][]model.RegisterEntry) {
	var entries []model.RegisterEntry
	for _, some := range registered {
		entries = append(entries, some...)
	}
	switch {
	case len(entries) == 0:
		return
	case !a.namesNATS():
		a.log.Info("nothing is registered, because no server of NATS is given", "entries", len(entries))
		return
	}
	store, err := a.store(ctx)
	if err != nil {
		a.log.Warn("nothing is registered", "error", a.connectHint(err))
		return
	}
	node := agent.DefaultConfig(hostname()).Node
	for _, e := range entries {
		if err := store.Register(ctx, registration.Of(e, node)); err != nil {
			a.log.Warn("a service is not registered", "service", e.Service, "cluster", e.Cluster, "error", err)
		}
	}
}
