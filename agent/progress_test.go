package agent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/resources/host/watch"
)

// TestAlive: a loop that waits is alive, also while the bucket hangs or a run is in progress. A loop
// that hangs is not.
func TestAlive(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		b := &stalledBucket{memoryBucket: n.injected(), reading: make(chan struct{}, 1), release: make(chan struct{})}
		b.stalls.Store(true)
		n.bucket = b
		s := newSlow(n)
		n.watching()
		hang := make(chan struct{})
		n.change = func(o *agent.Options) {
			arm := o.Watch
			o.Watch = func(p watch.Point, wake func()) (watch.Watch, error) {
				<-hang
				return arm(p, wake)
			}
		}
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
		b.put("group.all.slow", s.manifest("a", "wait1", "/watched"))
		for range 3 {
			look(true, "while the bucket hangs")
		}
		close(b.release)
		synctest.Wait()
		n.agent.Alive() // it came as far as the watch
		look(false, "hanging")
		look(false, "hanging")
		close(hang)
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
