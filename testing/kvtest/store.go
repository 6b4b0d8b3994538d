// Package kvtest runs what package kvstore keeps in NATS against a real server:
// a provisioned fleet, the watch and the service of a node, and what an
// administrator does beside them.
package kvtest

import (
	"context"
	"iter"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
)

// Store joins the rooms of kvstore over one connection.
type Store struct {
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
	assignmentBucket   = kvstore.Assignments
	nodeBucket         = kvstore.Nodes
	contentStore       = kvstore.Content
	reportStream       = kvstore.Reports
	registrationStream = kvstore.Registrations
)

// Of returns the store of a connection. It asks the server nothing.
func Of(nc *nats.Conn, prefix string) (*Store, error) {
	s, err := kvstore.New(nc, prefix, "")
	if err != nil {
		return nil, err
	}

	return &Store{
		s, kvstore.NewAssignments(s), kvstore.NewNodes(s), kvstore.NewContent(s), kvstore.NewReports(s), kvstore.NewRegistrations(s), requests.New(s), provision.New(s),
	}, nil
}

// FloodingRegistrations names the nodes that register more than counts.
func (s *Store) FloodingRegistrations(ctx context.Context) (map[string]string, error) {
	return s.registrationStream.Flooding(ctx)
}

// Flooding returns the nodes that report more than the stream stores, of nodes without manifests.
func (s *Store) Flooding(ctx context.Context) (map[string]string, error) {
	return s.FloodingAmong(ctx, func(string) int { return 0 })
}

// FloodingAmong is Flooding with the number of manifests that are assigned to each node.
func (s *Store) FloodingAmong(ctx context.Context, assigned func(node string) int) (map[string]string, error) {
	return s.reportStream.Flooding(ctx, assigned)
}

// Ask sends one request.
func Ask(ctx context.Context, c interface {
	Ask(ctx context.Context, all []requests.Request) iter.Seq2[requests.Reply, error]
}, subject string, data []byte) iter.Seq2[requests.Reply, error] {
	return c.Ask(ctx, []requests.Request{{Subject: subject, Data: data}})
}
