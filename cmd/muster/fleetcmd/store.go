package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// Store adapts NATS to the interfaces of package fleet.
type Store struct {
	kvstore.Assignments
	// KV is the connection, for everything except assignments.
	KV  *kvstore.Store
	log *slog.Logger
	// logged holds the invalid states that were logged, to log each once.
	logged map[string]bool
	// named are the silent servers in earlier warnings. Unstored omits them if omitsNamed is set.
	named      named
	omitsNamed bool
}

// named holds the silent servers in earlier warnings. It is safe for concurrent use.
type named struct {
	mu      sync.Mutex
	servers map[string]bool
}

// add adds a server, and reports whether it is new.
func (n *named) add(server string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	isNew := !n.servers[server]
	n.servers[server] = true

	return isNew
}

// Need names a stream that a command requires, see Open.
type Need func(kvstore.Names) string

// NeedManifests names the bucket of assignments.
func NeedManifests(n kvstore.Names) string { return kvstore.KVStream(n.Manifests) }

// NeedNodes names the bucket of node states.
func NeedNodes(n kvstore.Names) string { return kvstore.KVStream(n.Nodes) }

// NeedControl names the bucket of pauses, labels and groups.
func NeedControl(n kvstore.Names) string { return kvstore.KVStream(n.Control) }

// NeedReports names the stream of reports.
func NeedReports(n kvstore.Names) string { return n.Reports }

// Open connects to NATS and returns the fleet. If servers do not answer, it waits a moment for the needed
// streams and warns about the others. It warns once about each silent server.
func Open(ctx context.Context, env *cli.Env, needs ...Need) (*Store, error) {
	s, err := OpenUnwarned(ctx, env, needs...)
	if err != nil {
		return nil, err
	}
	s.omitsNamed = true
	silent := s.KV.LastSilentServers()
	for _, server := range slices.Sorted(maps.Keys(silent)) {
		if s.named.add(server) {
			env.Log.Warn(fleet.SilentServer(server, silent[server]))
		}
	}

	return s, nil
}

// OpenUnwarned is Open without warnings about silent servers other than the connected one. Use it in a
// command that prints Unstored.
func OpenUnwarned(ctx context.Context, env *cli.Env, needs ...Need) (*Store, error) {
	s, err := env.Store(ctx)
	if err != nil {
		return nil, err
	}
	out := &Store{Assignments: kvstore.NewAssignments(s).By(Operator()), KV: s, log: env.Log, logged: map[string]bool{}, named: named{servers: map[string]bool{}}}
	s.OnSilent(func(server string) {
		if out.named.add(server) {
			env.Log.Warn("the server " + server + " does not answer; continuing with another server")
		}
	})
	needed := make([]string, len(needs))
	for i, need := range needs {
		needed[i] = need(s.Names)
	}
	err = provision.New(s).Check(ctx, needed...)
	switch {
	case errors.Is(err, provision.ErrDiffers):
		env.Log.Warn("provisioning is not up to date", "error", err)
	case errors.Is(err, model.ErrNotProvisioned):
		return nil, err
	case errors.Is(err, provision.ErrUnchecked):
		env.Log.Warn("part of NATS does not answer", "error", err)
	case err != nil:
		return nil, err
	}

	return out, nil
}

// Nodes returns all nodes by name. An invalid state is logged and does not hide other nodes.
func (s *Store) Nodes(ctx context.Context) ([]model.Node, error) {
	all, err := kvstore.NewNodes(s.KV).Nodes(ctx)
	for _, n := range all {
		if problem := fmt.Sprintf("%s of node %s: %s", kvstore.ErrInvalidState, n.Node, n.Unreadable); n.Unreadable != "" && !s.logged[problem] {
			s.logged[problem] = true
			s.log.Warn("invalid node state", "error", problem)
		}
	}

	return all, err
}

// All reads all nodes and all assignments concurrently. An error of the nodes takes precedence.
func (s *Store) All(ctx context.Context) ([]model.Node, []model.Entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var entries []model.Entry
	var failed error
	var listing sync.WaitGroup
	listing.Go(func() { entries, failed = s.List(ctx) })
	all, err := s.Nodes(ctx)
	if err != nil {
		cancel()
	}
	listing.Wait()

	return all, entries, cmp.Or(err, failed)
}

// NoSuchNode returns an error for an unknown node, with a suggestion from all nodes of the fleet.
func (s *Store) NoSuchNode(ctx context.Context, name string) error {
	known, err := s.Nodes(ctx)
	if err != nil {
		return err
	}

	return NoSuchNode(name, known)
}

// NoSuchNode returns an error for an unknown node, with a suggestion. It wraps model.ErrNotFound.
func NoSuchNode(name string, known []model.Node) error {
	names := make([]string, len(known))
	for i, n := range known {
		names[i] = n.Node
	}

	return assign.NotFound("no such node: " + name + cli.DidYouMean(name, names) + " (see muster fleet nodes)")
}

// NoSuchTargets returns an error for the targets without known nodes, or nil. For nodes it wraps
// model.ErrNotFound.
func NoSuchTargets(targets []fleet.Target, known []model.Node) error {
	var unknown []error
	for _, t := range Unknown(targets, known) {
		switch {
		case t.Group == model.GroupAll:
		case t.Node != "":
			unknown = append(unknown, NoSuchNode(t.Node, known))
		default:
			unknown = append(unknown, NoSuchGroup(t, known))
		}
	}

	return errors.Join(unknown...)
}

// Unstored returns which documents of the nodes the server does not store, and the silent servers without an
// earlier warning. It returns nothing if that is unknown.
func (s *Store) Unstored(ctx context.Context, nodes []model.Node) fleet.Unstored {
	if s.KV.Away() != nil {
		return fleet.Unstored{}
	}
	found, err := fleet.FindUnstored(ctx, requests.New(s.KV), each(nodes))
	if err != nil {
		s.log.Debug("cannot find out what NATS stores", "error", err)
	}
	maps.DeleteFunc(found.Silent, func(server string, _ time.Time) bool { return s.omitsNamed && !s.named.add(server) })

	return found
}
