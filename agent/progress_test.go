package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/model"
)

// hangingBucket is a bucket that does not answer until it is released.
type hangingBucket struct {
	*memoryBucket
	release chan struct{}
}

func (b *hangingBucket) Read(ctx context.Context, key string, revision uint64) (model.Entry, error) {
	<-b.release

	return b.memoryBucket.Read(ctx, key, revision)
}

// TestAlive: a loop that waits and one with a run in hand go on, one that hangs does not.
func TestAlive(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		b := &hangingBucket{memoryBucket: n.injected(), release: make(chan struct{})}
		n.bucket = b
		s := newSlow(n)
		n.start()
		<-n.agent.Started()
		look := func(want bool, when string) {
			t.Helper()
			synctest.Wait()
			if n.agent.Alive() != want {
				t.Errorf("%s: alive is %v", when, !want)
			}
		}
		for range 3 {
			look(true, "waiting")
			n.after(10 * time.Minute)
		}
		b.put("group.all.slow", s.manifest("a", "wait1"))
		b.wake(nil)
		synctest.Wait()
		n.agent.Alive() // it came as far as the bucket
		look(false, "hanging")
		look(false, "hanging")
		close(b.release)
		synctest.Wait()
		if len(s.begun) == 0 {
			t.Fatalf("nothing runs: %+v", n.agent.State())
		}
		for range 3 {
			look(true, "with a run in hand")
		}
		status := n.agent.Describe()
		if len(status.Running) != 1 || status.Running[0].Manifest != "group.all.slow" || status.Running[0].RunID == "" {
			t.Errorf("what runs is %+v", status.Running)
		}
		close(s.release)
		synctest.Wait()
		status = n.agent.Describe()
		if len(status.Running) != 0 || len(status.Manifests) != 1 || status.Manifests[0].Last == nil || status.Manifests[0].Last.RunID == "" {
			t.Errorf("after it: %+v", status)
		}
		look(true, "after it")
	})
}
