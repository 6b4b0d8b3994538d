package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(90 * time.Second)
	defer limit.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// TestWithARealServer: away at start, there, lost in the middle, back.
func TestWithARealServer(t *testing.T) {
	server := natstest.Start(t)
	operator, err := kvtest.Of(server.Connect(t), "muster")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	if _, err := operator.Put(t.Context(), "node."+n.config.Node+".motd", []byte(n.manifest("motd", "one"))); err != nil {
		t.Fatal(err)
	}
	server.Stop()

	var running *agent.Agent
	connected := make(chan struct{}, 100)
	conn, err := connect.Dial(t.Context(), connect.Options{Servers: []string{server.URL()}, RetryOnFailedConnect: true, OnStatus: func(s connect.Status) {
		if s.Connected {
			connected <- struct{}{}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	store, err := kvtest.Of(conn, "muster")
	if err != nil {
		t.Fatal(err)
	}
	n.injected()
	options := n.options()
	options.Assignments = watch.New(store.Store, watch.Options{Node: n.config.Node, Retry: 50 * time.Millisecond, Log: options.Log})
	options.Publisher, options.States = kvstore.NewReports(store.Store), kvstore.NewNodes(store.Store)
	running, err = agent.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended, told := make(chan error, 1), make(chan struct{})
	go func() { ended <- running.Run(ctx, t.Context()) }()
	go func() {
		defer close(told)
		for {
			select {
			case <-connected:
				running.Connected()
			case <-ctx.Done():
				return
			}
		}
	}()
	holds := func(want string) func() bool {
		return func() bool {
			got, _ := os.ReadFile(n.path("motd"))
			return string(got) == want
		}
	}

	eventually(t, "the start is in the outbox", func() bool { return running.State().Outbox > 0 })
	server.Start(t)
	eventually(t, "the manifest is applied", holds("one"))
	eventually(t, "all is reported", func() bool { return running.State().Outbox == 0 })
	server.Stop()
	running.Requests().Ensure(t.Context(), nil, n.request("r1", "asked", "while away", ""), func(model.EnsureResponse) {})
	eventually(t, "a request is executed without NATS", func() bool { return running.State().Outbox > 0 })
	server.Start(t)
	eventually(t, "an operator can push again", func() bool {
		_, err := operator.Put(t.Context(), "group.all.motd2", []byte(n.manifest("motd2", "x")))
		return err == nil
	})
	if _, err := operator.Put(t.Context(), "node."+n.config.Node+".motd", []byte(n.manifest("motd", "two"))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second version is applied", holds("two"))
	eventually(t, "the other one too", func() bool {
		_, err := os.Stat(n.path("motd2"))
		return err == nil && running.State().Outbox == 0
	})
	eventually(t, "the clock is compared", func() bool {
		found, err := options.States.State(t.Context(), n.config.Node)
		return err == nil && found.Clock.Within > 0
	})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	kvtest.Receive(t, told)
	found, err := options.States.State(t.Context(), n.config.Node)
	if c := found.Clock; err != nil || c.Within <= 0 || c.Offset.Std().Abs() > c.Within.Std() {
		t.Errorf("on the machine of the server the clock is %s from its own, within %s, %v", c.Offset, c.Within, err)
	}

	var words []string
	last := uint64(0)
	for r, err := range operator.Reports(t.Context(), model.ReportRange{Node: n.config.Node}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Seq > last+1 {
			t.Errorf("report %d follows %d", r.Seq, last)
		}
		last = max(last, r.Seq)
		words = append(words, r.Kind+" "+string(r.Outcome))
	}
	text := strings.Join(words, ", ")
	for _, want := range []string{"node started", "transaction changed", "run changed", "ensure changed", "node stopped"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}

// TestWhatIsAssignedIsOnDiskThoughAFamilyCannotBeRead: the node may read the group
// web only, and is in db too.
func TestWhatIsAssignedIsOnDiskThoughAFamilyCannotBeRead(t *testing.T) {
	guarded := kvtest.OneAccount(t)
	nc := guarded.Server.Connect(t, nats.UserInfo("web01", "web01"), nats.CustomInboxPrefix(kvstore.InboxPrefix("web01")),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // the test is about the denial
	store, err := kvtest.Of(nc, "")
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	n.injected()
	n.config.Node, n.config.Groups = "web01", []string{"web", "db"}
	options := n.options()
	options.Assignments = watch.New(store.Store, watch.Options{Node: "web01", Groups: n.config.Groups, Log: options.Log})
	node, err := agent.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx, t.Context()) }()
	for _, content := range []string{"one", "two"} {
		value := n.manifest("motd", content)
		if _, err := guarded.Admin.Put(t.Context(), "group.all.motd", []byte(value)); err != nil {
			t.Fatal(err)
		}
		eventually(t, content+" is on disk", func() bool {
			var kept struct{ Good model.Entry }
			text, err := os.ReadFile(filepath.Join(n.state, "assignments", "group.all.motd.json"))
			return err == nil && json.Unmarshal(text, &kept) == nil && string(kept.Good.Value) == value
		})
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(n.state, "seen.json")); err != nil || strings.Contains(string(text), "value") {
		t.Errorf("seen.json holds %s (%v)", text, err)
	}
}
