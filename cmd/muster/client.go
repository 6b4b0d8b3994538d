package main

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
)

// client is the connection that commands share, made when one is needed.
type client struct {
	nc    *nats.Conn
	store *kvstore.Store
}

func (c *client) close() { c.nc.Close() }

// store gives the fleet on NATS, connecting first where that was not done yet.
// What is provisioned is not checked: kvGet of any bucket needs none of it.
func (a *app) store(ctx context.Context) (*kvstore.Store, error) {
	if a.client != nil {
		return a.client.store, nil
	}
	if _, err := kvstore.NewNames(a.prefix); err != nil {
		return nil, usagef("--prefix: %w", err)
	}
	options := a.connect
	options.Name = "muster " + version()
	nc, err := kvstore.Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	store, err := kvstore.New(nc, a.prefix)
	if err != nil {
		nc.Close()
		return nil, err
	}
	a.client = &client{nc: nc, store: store}

	return store, nil
}
