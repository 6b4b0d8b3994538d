package agent_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/model"
)

func TestStopFinishesTheChangeInHand(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.slow", s.manifest("a", "wait1", "second", "third"))
		<-s.begun
		n.take()
		go func() {
			<-time.After(30 * time.Second)
			close(s.release)
		}()
		n.stop()
		n.tells("transaction changed slow#wait1", "transaction notrun slow#second", "transaction notrun slow#third", "run notrun group.all.slow manifest")
		if !s.done["wait1"] || s.done["second"] {
			t.Errorf("done is %v", s.done)
		}
		n.start()
		if !s.done["third"] {
			t.Error("the next start did not do what was left")
		}
		if run := n.lastRun(); run.Cause != model.CauseManifest {
			t.Errorf("the run is %+v", run)
		}
	})
}

func TestStopBreaksOffAfterTheTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.slow", s.manifest("a", "wait1", "second"))
		<-s.begun
		n.take()
		before := time.Now()
		n.stop()
		if waited := time.Since(before); waited < time.Minute || waited > 2*time.Minute {
			t.Errorf("it took %s", waited)
		}
		n.tells("transaction failed slow#wait1", "transaction notrun slow#second", "run failed group.all.slow manifest")
	})
}

func TestStopIsBrokenOff(t *testing.T) {
	for _, told := range []bool{true, false} {
		bubble(t, func(t *testing.T, n *node) {
			s := newSlow(n)
			n.start()
			n.bucket.put("group.all.slow", s.manifest("a", "wait1", "second"))
			<-s.begun
			n.take()
			if told {
				go n.stop()
				n.settle()
			}
			n.breakOff(errors.New("terminated, twice"))
			n.tells("transaction failed slow#wait1", "transaction notrun slow#second", "run failed group.all.slow manifest")
			if !strings.Contains(n.log.String(), "terminated, twice") {
				t.Error("the log does not say why")
			}
		})
	}
}

func TestPanicOfATypeFailsItsResource(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		s.panics = true
		n.start()
		n.bucket.put("group.all.a", s.manifest("a", "x"))
		n.put("group.all.b", "motd", "hello")
		n.has("motd", "hello")
		n.tells("transaction failed slow#x", "run failed group.all.a manifest", "transaction changed file#motd", "run changed group.all.b manifest")
	})
}

func TestPutsWhileARunGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.slow", s.manifest("a", "wait1"))
		<-s.begun
		for _, content := range []string{"1", "2", "3"} {
			n.bucket.put("group.all.motd", n.manifest("motd", content))
			synctest.Wait()
		}
		n.lacks("motd")
		n.take()
		close(s.release)
		n.settle()
		n.has("motd", "3")
		n.tells("transaction changed slow#wait1", "run changed group.all.slow manifest", "transaction changed file#motd", "run changed group.all.motd manifest")
	})
}
