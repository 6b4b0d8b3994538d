package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestTheStoreOfTheServerIsFull tests that an agent names the reason while its state and its reports are not stored, and
// that it loses none of them.
func TestTheStoreOfTheServerIsFull(t *testing.T) {
	server := natstest.Start(t, natstest.WithMaxStore(64<<20))
	operator := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(server.Connect(t), "") })
	if _, err := operator.Apply(t.Context(), provision.Options{ReportBytes: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	n.config.Heartbeat, n.config.StateTTL = model.Duration(time.Second), model.Duration(time.Hour)
	key := "node." + n.config.Node + ".motd"
	revision := kvtest.Must(t, func() (uint64, error) { return operator.Put(t.Context(), key, []byte(n.manifest("motd", "one"))) })
	running := n.onServer(server)
	stored := func() model.Node {
		found, _ := operator.State(t.Context(), n.config.Node)
		return found
	}
	eventually(t, "the revision is active", func() bool { return stored().Manifests[key].Revision == revision && running.State().Outbox == 0 })
	if s := running.State(); len(s.Unstored) > 0 {
		t.Errorf("before: %q", s.Unstored)
	}

	free := kvtest.FillServer(t, operator)
	for _, id := range []string{"r1", "r2", "r3"} {
		running.Requests().Ensure(t.Context(), nil, n.request(id, id, "while it is full", ""), func(model.EnsureResponse) {})
	}
	eventually(t, "both are named", func() bool {
		text := fmt.Sprint(running.State().Unstored)
		return strings.Contains(text, "reports not stored since ") && strings.Contains(text, "state not stored since ") &&
			strings.Contains(text, "no room in JetStream") && strings.Contains(text, "/healthz")
	})
	if notices := strings.Join(running.Describe().Notices, "\n"); !strings.Contains(notices, "state not stored since ") {
		t.Errorf("the node itself shows %s", notices)
	}
	eventually(t, "the reports of the requests wait", func() bool { return running.State().Outbox >= 3 })

	free()
	eventually(t, "all is stored", func() bool {
		s := running.State()
		return s.Outbox == 0 && len(s.Unstored) == 0 && stored().Outbox == 0
	})
	if text := stored().Unstored; len(text) > 0 {
		t.Errorf("the stored state has %q", text)
	}
	seen, ensured := map[string]int{}, 0
	for r, err := range operator.Reports(t.Context(), model.ReportRange{Node: n.config.Node}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[r.ID]++; seen[r.ID] > 1 {
			t.Errorf("report %s is stored twice", r.ID)
		}
		if r.Kind == model.KindEnsure {
			ensured++
		}
	}
	if ensured != 3 {
		t.Errorf("%d of 3 reports are stored", ensured)
	}
}

// onServer runs the agent of the node on a server until the test ends.
func (n *node) onServer(server *natstest.Server, more ...nats.Option) *agent.Agent {
	n.t.Helper()
	connected := make(chan struct{}, 100)
	conn := server.Connect(n.t, append(more, nats.ReconnectHandler(func(*nats.Conn) { connected <- struct{}{} }))...)
	store := kvtest.Must(n.t, func() (*kvtest.Store, error) { return kvtest.Of(conn, "") })
	n.injected()
	options := n.options()
	options.Assignments = watch.New(store.Store, watch.Options{Node: n.config.Node, Retry: 50 * time.Millisecond, Log: options.Log})
	options.Publisher, options.States = kvstore.NewReports(store.Store), kvstore.NewNodes(store.Store)
	running := kvtest.Must(n.t, func() (*agent.Agent, error) { return agent.New(n.t.Context(), options) })
	ctx, stop := context.WithCancel(context.WithoutCancel(n.t.Context()))
	ended := make(chan error, 2)
	go func() { ended <- running.Run(ctx, context.WithoutCancel(ctx)) }()
	go func() {
		for {
			select {
			case <-connected:
				running.Connected()
			case <-ctx.Done():
				ended <- nil
				return
			}
		}
	}()
	n.t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				n.t.Error(err)
			}
		}
	})

	return running
}
