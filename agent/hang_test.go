package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// stalledBucket delays reads until release is closed.
type stalledBucket struct {
	*memoryBucket
	stalls  atomic.Bool
	reading chan struct{}
	release chan struct{}
}

func (b *stalledBucket) Read(ctx context.Context, key string, revision uint64) (model.Entry, error) {
	if b.stalls.Load() {
		b.reading <- struct{}{}
		select {
		case <-b.release:
		case <-ctx.Done():
		}
	}

	return b.memoryBucket.Read(ctx, key, revision)
}

// drifts writes a file and fails unless the agent repairs it.
func (n *node) drifts(name, content string) {
	n.t.Helper()
	if err := os.WriteFile(n.path(name), []byte("other"), 0o644); err != nil {
		n.t.Fatal(err)
	}
	n.machine.happens(n.path(name), true)
	n.settle()
	n.has(name, content)
}

func TestDriftIsRepairedWhileTheBucketHangs(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		b := &stalledBucket{memoryBucket: n.injected(), reading: make(chan struct{}, 1), release: make(chan struct{})}
		n.bucket = b
		n.watching()
		n.start()
		n.put("group.all.files", "a", "one")
		n.has("a", "one")
		b.stalls.Store(true)
		n.put("group.all.other", "b", "two")
		<-b.reading
		n.drifts("a", "one")
		n.lacks("b")
		b.stalls.Store(false)
		close(b.release)
		n.settle()
		n.has("b", "two")
	})
}

// TestDriftIsRepairedWhileDataHangs: a manifest reads data of the bucket MUSTER_DATA, at its push and before a later run.
func TestDriftIsRepairedWhileDataHangs(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.injected()
		n.watching()
		n.outside.setKV("first", nil)
		n.start()
		n.put("group.all.files", "a", "one")
		reading, release := make(chan struct{}, 1), make(chan struct{})
		n.outside.setKVFunc(func() ([]byte, error) {
			reading <- struct{}{}
			<-release
			return []byte("first"), nil
		})
		n.bucket.put("group.all.data", n.manifest("b", "${ kvGet('settings', 'motd') }"))
		<-reading
		n.drifts("a", "one")
		close(release)
		n.settle()
		n.has("b", "first")

		reading, release = make(chan struct{}, 1), make(chan struct{})
		n.after(n.config.Interval.Std() * 3)
		<-reading
		n.drifts("a", "one")
		n.drifts("b", "first")
		close(release)
		n.settle()
	})
}

// TestMessagesOfAPut counts what a put costs at the server: one read of its value, one state, and no
// read of the stored state.
func TestMessagesOfAPut(t *testing.T) {
	server := natstest.Start(t)
	operator := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(server.Connect(t), "") })
	if _, err := operator.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	running := n.onServer(server)
	key := "node." + n.config.Node + ".motd"
	active := func(revision uint64) func() bool {
		return func() bool {
			s := running.State()
			return s.Manifests[key].Revision == revision && s.Manifests[key].Outcome != "" && s.Outbox == 0
		}
	}
	put := func(content string) uint64 {
		return kvtest.Must(t, func() (uint64, error) { return operator.Put(t.Context(), key, []byte(n.manifest("motd", content))) })
	}
	eventually(t, "the first version is active", active(put("one")))
	counter := server.Connect(t)
	subscribe := func(subject string) *nats.Subscription {
		return kvtest.Must(t, func() (*nats.Subscription, error) { return counter.SubscribeSync(subject) })
	}
	values, states, stored := subscribe("*.API.DIRECT.GET.KV_MUSTER_MANIFESTS.>"), subscribe("$KV.MUSTER_NODES.>"), subscribe("*.API.DIRECT.GET.KV_MUSTER_NODES.>")
	if err := counter.Flush(); err != nil {
		t.Fatal(err)
	}
	revision := put("two")
	m := kvtest.Must(t, func() (*nats.Msg, error) { return states.NextMsg(time.Minute) })
	var state model.NodeState
	if err := json.Unmarshal(m.Data, &state); err != nil || state.Manifests[key].Revision != revision || state.Manifests[key].Outcome != model.OutcomeChanged || state.Outbox != 0 {
		t.Errorf("the first state after the put is %s (%v)", m.Data, err)
	}
	eventually(t, "all is reported", active(revision))
	if err := counter.Flush(); err != nil {
		t.Fatal(err)
	}
	for subscription, want := range map[*nats.Subscription]int{values: 1, states: 0, stored: 0} {
		if count, _, err := subscription.Pending(); err != nil || count != want {
			t.Errorf("%d more messages on %s, want %d (%v)", count, subscription.Subject, want, err)
		}
	}
}

// TestDriftIsRepairedAtEachRequestOfAPut stalls the server at each message that an agent sends
// because of a put, one after the other.
func TestDriftIsRepairedAtEachRequestOfAPut(t *testing.T) {
	server := natstest.Start(t)
	operator := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(server.Connect(t), "") })
	if _, err := operator.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	proxy := server.Stalling(t)
	n := newNode(t)
	n.watching()
	running := n.onServer(server, func(o *nats.Options) error {
		o.Url, o.Servers, o.IgnoreDiscoveredServers = proxy.URL, nil, true
		return nil
	})
	holds := func(name, content string) func() bool {
		return func() bool {
			got, _ := os.ReadFile(n.path(name))
			return string(got) == content
		}
	}
	put := func(name, content string) (finished func() bool) {
		t.Helper()
		key := "node." + n.config.Node + "." + name
		revision := kvtest.Must(t, func() (uint64, error) { return operator.Put(t.Context(), key, []byte(n.manifest(name, content))) })
		return func() bool {
			found, _ := operator.State(t.Context(), n.config.Node)
			m := found.Manifests[key]
			return holds(name, content)() && m.Revision == revision && m.Outcome == model.OutcomeChanged && running.State().Outbox == 0
		}
	}
	const most = 20 // one file for each request, because a file that drifts often flaps
	var watched []string
	for i := range most {
		watched = append(watched, fmt.Sprint("kept", i), "as declared")
	}
	key := "node." + n.config.Node + ".kept"
	if _, err := operator.Put(t.Context(), key, []byte(n.manifest(watched...))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the watched files are written", func() bool { return running.State().Manifests[key].Outcome == model.OutcomeChanged })
	eventually(t, "the second manifest is applied", put("motd", "0"))
	for request := 1; request < most; request++ {
		reached, release := proxy.StallAt(request)
		stalled := func() bool {
			select {
			case <-reached:
				return true
			default:
				return false
			}
		}
		finished := put("motd", fmt.Sprint(request))
		eventually(t, "the put stalls or is applied", func() bool { return stalled() || finished() })
		if !stalled() {
			release()
			if request < 4 {
				t.Errorf("the agent sent %d messages, want at least the read, the state and the report", request-1)
			}
			return
		}
		name := fmt.Sprint("kept", request)
		if err := os.WriteFile(n.path(name), []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
		written := time.Now()
		n.machine.happens(n.path(name), true)
		eventually(t, fmt.Sprintf("the repair while request %d hangs", request), holds(name, "as declared"))
		// A repair that waited for the request would come after the request timeout.
		took := time.Since(written)
		t.Logf("the repair while request %d hangs took %s", request, took)
		if took > kvstore.RequestTimeout/2 {
			t.Errorf("the repair while request %d hangs took %s", request, took)
		}
		release()
		eventually(t, "the put is applied after the stall", finished)
	}
	t.Errorf("the agent sent more than %d messages for one put", most)
}
