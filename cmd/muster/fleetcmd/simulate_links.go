package fleetcmd

import (
	"context"
	"log/slog"
	"sync"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/kvstore/watch"
)

// NodesPerConnection is the number of nodes that use one connection. Each node has its own subscriptions, so
// the server delivers the same messages as to agents. With one connection per node, a push takes twice the
// CPU time and the server twice the memory (docs/performance.md), mostly for sockets, which the simulation
// does not measure.
const NodesPerConnection = 250

// OpenLink connects to NATS. It calls onStatus for each change of the connection.
type OpenLink func(ctx context.Context, onStatus func(connect.Status)) (*kvstore.Store, error)

// links connects nodes to NATS, many nodes per connection.
type links struct {
	open OpenLink
	// each is the number of nodes per connection.
	each int
	log  *slog.Logger

	stores []*kvstore.Store
	last   *connection
}

// connection is a connection of several nodes.
type connection struct {
	store *kvstore.Store

	mu sync.Mutex
	// nodes are callbacks for a reconnect.
	nodes []func()
}

func (c *connection) changed(s connect.Status) {
	if !s.Connected || s.Err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, connected := range c.nodes {
		connected()
	}
}

// connect connects a node to NATS.
func (l *links) connect(ctx context.Context, s simulate.Script, connected func()) (simulate.Link, error) {
	if l.last == nil || len(l.last.nodes) >= l.each {
		c := &connection{}
		store, err := l.open(ctx, c.changed)
		if err != nil {
			return simulate.Link{}, err
		}
		c.store, l.last = store, c
		l.stores = append(l.stores, store)
	}
	l.last.mu.Lock()
	l.last.nodes = append(l.last.nodes, connected)
	l.last.mu.Unlock()
	store := l.last.store

	return simulate.Link{
		Assignments: watch.New(store, watch.Options{Node: s.Node, Groups: s.Groups, Log: l.log}),
		States:      kvstore.NewNodes(store),
		Publisher:   kvstore.NewReports(store),
		Serve: func(ctx context.Context, n *simulate.Node) error {
			return serveNode(ctx, requests.New(store), n, l.log)
		},
	}, nil
}

// first returns the store of the first connection. There must be one.
func (l *links) first() *kvstore.Store { return l.stores[0] }

// serveNode answers requests to a node, and handles its queued requests, until ctx ends.
func serveNode(ctx context.Context, client requests.Client, n *simulate.Node, log *slog.Logger) error {
	for ctx.Err() == nil {
		if err := serveGroups(ctx, client, n, log); err != nil {
			return err
		}
	}

	return nil
}

// serveGroups is serveNode until the groups of the node change.
func serveGroups(ctx context.Context, client requests.Client, n *simulate.Node, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 2)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	groups := n.Groups()
	all.Go(func() {
		ended <- client.Serve(ctx, requests.ServeOptions{
			Node: n.Name(), Groups: groups, Version: n.Version(), Log: log, Ready: n.Listening, Ensure: n.Requests().Ensure, Run: n.Requests().Run, Preview: n.Previews().Preview, Status: n.Requests().Status,
			Facts: func(context.Context, []byte) (any, error) { return n.Facts(), nil },
			Ping:  func(context.Context, []byte) (any, error) { return n.State(), nil },
		})
	})
	all.Go(func() {
		ended <- client.Commands(ctx, requests.CommandOptions{Node: n.Name(), Groups: groups, Log: log}, func(_ context.Context, c requests.Command) error {
			if c.Refused == nil {
				n.Requests().Command(c.Sender, c.ID, c.Data)
			}
			return nil
		})
	})
	select {
	case err := <-ended:
		return err
	case <-n.GroupsChanged():
		return nil
	}
}
