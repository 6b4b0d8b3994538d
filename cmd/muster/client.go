package main

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/assignments"
	"github.com/musterfleet/muster/kvstore/content"
	"github.com/musterfleet/muster/kvstore/nodes"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/registrations"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/kvstore/requests"
)

// natsStore joins the rooms of kvstore over one connection.
type natsStore struct {
	*kvstore.Store
	assignmentBucket
	nodeBucket
	contentStore
	reportStream
	registrationStream
	requests.Client
	provision.Provisioner
}

type (
	assignmentBucket   = assignments.Bucket
	nodeBucket         = nodes.Bucket
	contentStore       = content.Store
	reportStream       = reports.Stream
	registrationStream = registrations.Stream
)

func newNATSStore(s *kvstore.Store) *natsStore {
	return &natsStore{
		s, assignments.New(s), nodes.New(s), content.New(s), reports.New(s), registrations.New(s), requests.New(s), provision.New(s),
	}
}

// client is the connection that commands share, made when one is needed.
type client struct {
	nc    *nats.Conn
	store *natsStore
}

func (c *client) close() { c.nc.Close() }

// store gives the fleet on NATS, connecting first where that was not done yet.
// What is provisioned is not checked: kvGet of any bucket needs none of it.
func (a *app) store(ctx context.Context) (*natsStore, error) {
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
	a.client = &client{nc: nc, store: newNATSStore(store)}

	return a.client.store, nil
}
