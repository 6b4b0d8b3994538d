package fleetsim

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
)

// Options are what the nodes do.
type Options struct {
	// Groups are the groups of every node.
	Groups []string
	// GroupJitter is the period over which nodes spread their reads of a group's key.
	GroupJitter time.Duration
	// Heard is called when a node receives a change of a group.
	Heard func()
	// Taken is called when a node has read a change.
	Taken func(node string, keys []string)
}

// Node is a connected node.
type Node struct {
	Conn  *nats.Conn
	Watch *watch.Watch
}

// connecting is how many nodes connect at the same time.
const connecting = 64

// Join connects nodes as agents do, and returns when all know their assignments. The end of the test
// disconnects them.
func Join(tb testing.TB, names []string, options func(node string) connect.Options, o Options) []*Node {
	tb.Helper()
	nodes := make([]*Node, len(names))
	errs := make([]error, len(names))
	ctx, cancel := context.WithCancel(tb.Context())
	var running, joining sync.WaitGroup
	tb.Cleanup(func() {
		cancel()
		running.Wait()
	})
	slots := make(chan struct{}, connecting)
	for i, name := range names {
		slots <- struct{}{}
		joining.Go(func() {
			defer func() { <-slots }()
			nodes[i], errs[i] = join(ctx, &running, name, options(name), o)
		})
	}
	joining.Wait()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}

	return nodes
}

// join connects one node and waits for its first look at its assignments.
func join(ctx context.Context, running *sync.WaitGroup, name string, options connect.Options, o Options) (*Node, error) {
	store, nc, err := dial(ctx, name, options)
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	n := &Node{Conn: nc, Watch: watch.New(store, watch.Options{Node: name, Groups: o.Groups, GroupJitter: o.GroupJitter, Log: quiet})}
	if o.Heard != nil {
		for _, family := range model.Families(name, o.Groups)[1:] {
			subject := store.Names.Changed(model.Key(family, ">"))
			if _, err := nc.Subscribe(subject, func(*nats.Msg) { o.Heard() }); err != nil {
				return nil, err
			}
		}
	}
	known := make(chan struct{})
	all := sync.OnceFunc(func() { close(known) })
	run(ctx, running, nc, func(ctx context.Context) error {
		return n.Watch.Run(ctx, model.Memory{}, func(keys []string) {
			if len(keys) > 0 && o.Taken != nil {
				o.Taken(name, keys)
			}
			if _, state := n.Watch.Entries(); !state.At.IsZero() {
				all()
			}
		})
	})
	client := requests.New(store)
	run(ctx, running, nc, func(ctx context.Context) error {
		return client.Serve(ctx, requests.ServeOptions{Node: name, Groups: o.Groups, Version: "0.0.0", Log: quiet, Ping: pong(name)})
	})
	run(ctx, running, nc, func(ctx context.Context) error {
		return client.Commands(ctx, requests.CommandOptions{Node: name, Groups: o.Groups, Log: quiet}, func(context.Context, requests.Command) error { return nil })
	})
	select {
	case <-known:
		return n, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func dial(ctx context.Context, name string, options connect.Options) (*kvstore.Store, *nats.Conn, error) {
	options.InboxPrefix = kvstore.InboxPrefix(name)
	nc, err := connect.Dial(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	store, err := kvstore.New(nc, "", "")

	return store, nc, err
}

// run runs a part of a node until the context ends; then its connection goes too.
func run(ctx context.Context, running *sync.WaitGroup, nc *nats.Conn, part func(context.Context) error) {
	running.Go(func() {
		defer nc.Close()
		_ = part(ctx)
	})
}

func pong(node string) requests.Answer {
	return func(context.Context, []byte) (any, error) { return json.RawMessage(`"` + node + `"`), nil }
}
