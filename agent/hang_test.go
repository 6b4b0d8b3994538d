package agent_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// stalledBucket is a bucket whose reads wait until they are released.
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

// TestOneDirectGetPerPut counts the reads of a put at the server.
func TestOneDirectGetPerPut(t *testing.T) {
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
	reads, err := counter.SubscribeSync("*.API.DIRECT.GET.KV_MUSTER_MANIFESTS.>")
	if err == nil {
		err = counter.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second version is active", active(put("two")))
	if err := counter.Flush(); err != nil {
		t.Fatal(err)
	}
	if count, _, err := reads.Pending(); err != nil || count != 1 {
		t.Errorf("the node read the manifests %d times, want once (%v)", count, err)
	}
}
