package localcmd

import (
	"context"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// register publishes what the resources of a run registered, once: nothing renews
// it after a command. A failure is logged, and fails nothing.
func (c *runner) register(ctx context.Context, registered map[model.Ref][]model.RegisterEntry) {
	var entries []model.RegisterEntry
	for _, some := range registered {
		entries = append(entries, some...)
	}
	switch {
	case len(entries) == 0:
		return
	case !c.NamesNATS():
		c.Log.Info("nothing registered, no NATS server is given", "entries", len(entries))
		return
	}
	store, err := c.Store(ctx)
	if err != nil {
		c.Log.Warn("nothing registered", "error", c.ConnectHint(err))
		return
	}
	node := config.Default(cli.Hostname()).Node
	for _, e := range entries {
		if err := kvstore.NewRegistrations(store).Register(ctx, registration.Of(e, node)); err != nil {
			c.Log.Warn("service not registered", "service", e.Service, "cluster", e.Cluster, "error", err)
		}
	}
}
