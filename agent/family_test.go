package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

// TestNeverOlderThanWhatRan: the stored copy of the bucket may be older than a later run. It becomes active
// only after the bucket confirms it.
func TestNeverOlderThanWhatRan(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		n.start()
		old := n.put("group.all.motd", "motd", "one")
		remembered := bucket.entries["group.all.motd"]
		newest := n.put("group.all.motd", "motd", "two")
		n.stop()
		bucket.entries["group.all.motd"] = remembered
		bucket.sync = model.Sync{Err: errors.New("NATS is away")}
		n.start()
		n.after(10 * time.Minute)
		n.has("motd", "two")
		if got := n.agent.State().Manifests["group.all.motd"]; got.Revision != newest {
			t.Errorf("the state is %+v", got)
		}
		// A read of another family proves nothing about this one.
		bucket.change(func() { bucket.sync.Known = []string{"node.web01_example_net"} })
		n.settle()
		n.has("motd", "two")
		// A bucket put back to an older state, which was read.
		bucket.change(func() { bucket.sync.Known = append(bucket.sync.Known, "group.all") })
		n.settle()
		n.has("motd", "one")
		if got := n.agent.State().Manifests["group.all.motd"]; got.Revision != old {
			t.Errorf("the state is %+v", got)
		}
	})
}

// TestFamilyThatIsNotReadHoldsUpNoOther: keys missing from a read family are unassigned; keys of an unread
// family stay.
func TestFamilyThatIsNotReadHoldsUpNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		n.start()
		n.put("group.web.a", "a", "one")
		n.put("group.prod.b", "b", "one")
		n.stop()
		n.take()
		clear(bucket.entries)
		bucket.sync = model.Sync{Known: []string{"node.web01_example_net", "group.web", "group.all"}, Err: errors.New("group.prod: not permitted")}
		n.start()
		n.put("group.all.c", "c", "one")
		n.has("c", "one")
		state := n.agent.State()
		if _, there := state.Manifests["group.web.a"]; there || state.Manifests["group.prod.b"].Revision == 0 || state.Message != "group.prod: not permitted" {
			t.Errorf("the state is %+v", state)
		}
	})
}

func TestKeyOfAWrongFormIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		n.start()
		n.take()
		for range 2 {
			bucket.change(func() { bucket.sync.Invalid = []string{"node.web01_example_net.a.b"} })
			n.settle()
		}
		n.tells("node refused")
		if message := n.agent.State().Message; !strings.Contains(message, "node.web01_example_net.a.b") {
			t.Errorf("the message is %q", message)
		}
	})
}

// TestAllThatIsWrongIsShown: no problem hides another. A common remedy is shown once.
func TestAllThatIsWrongIsShown(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		const remedy = " (permit it)"
		bucket := n.injected()
		n.start()
		bucket.change(func() {
			bucket.sync.Err, bucket.sync.Denied = errors.New("group.prod: not permitted"+remedy), errors.New("not permitted to subscribe to a"+remedy)
			bucket.sync.Invalid, bucket.sync.Unreadable = []string{"node.web01_example_net.a.b"}, []string{"group.all.motd"}
			bucket.sync.Kept = []string{strings.Repeat("x", 2000)}
		})
		n.settle()
		message := n.agent.State().Message
		for _, want := range []string{"the bucket was recreated", " … (cut); group.prod: not permitted; a change may be noticed late", "subscribe to a" + remedy, "stored with unreadable headers", "not a key of an assignment"} {
			if !strings.Contains(message, want) {
				t.Errorf("%q is missing in %q", want, message)
			}
		}
	})
}

// TestARemedyThatComesFirstStaysThere: it is not moved behind other problems, where it may be cut.
func TestARemedyThatComesFirstStaysThere(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		n.start()
		bucket.change(func() {
			bucket.sync.Err, bucket.sync.Denied = errors.New("group.prod is not permitted: permit it (read x)"), errors.New("not permitted to subscribe to a (permit it)")
		})
		n.settle()
		if message, want := n.agent.State().Message, "group.prod is not permitted: permit it (read x); a change may be noticed late, and a request not at all: not permitted to subscribe to a"; message != want {
			t.Errorf("%q", message)
		}
	})
}
