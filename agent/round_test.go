package agent_test

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

// held is a node whose checks are in progress and do not end.
func held(t *testing.T, f func(n *node, c *clinic, release func())) {
	t.Helper()
	monitored(t, time.Minute, func(n *node, c *clinic) {
		n.settle()
		hold := make(chan struct{})
		c.set("http", model.HealthCritical)
		c.holds(hold)
		n.after(70 * time.Second)
		n.take()
		c.since()
		f(n, c, func() {
			hold <- struct{}{}
			n.settle()
		})
	})
}

func TestChecksHoldUpNothing(t *testing.T) {
	held(t, func(n *node, c *clinic, release func()) {
		if a := n.ask(n.request("r1", "motd", "x", "")); a.phases() != "acknowledged running done" {
			t.Errorf("answered %s", a.phases())
		}
		n.put("group.all.other", "other", "y")
		n.has("other", "y")
		n.after(10 * time.Minute)
		if made := c.since(); made != 0 {
			t.Errorf("%d more checks were begun", made)
		}
	})
}

func TestWhatIsFoundRepairsInItsTurn(t *testing.T) {
	held(t, func(n *node, c *clinic, release func()) {
		c.holds(nil)
		release()
		n.tells("health critical", "transaction failed exec#restart", "run failed group.all.shop health")
		if n.restarts() != 1 {
			t.Errorf("%d refreshes", n.restarts())
		}
	})
}

// TestChecksDuringAChange: what something changed under is looked at again, once.
func TestChecksDuringAChange(t *testing.T) {
	held(t, func(n *node, c *clinic, release func()) {
		n.ask(n.request("r1", "motd", "x", ""))
		c.holds(nil)
		c.set("http", model.HealthOK)
		release()
		n.tells("ensure changed")
		if made := c.since(); made != 3 { // the other one of the first time, and both again
			t.Errorf("%d checks", made)
		}
	})
	held(t, func(n *node, c *clinic, release func()) {
		n.ask(n.request("r1", "motd", "x", ""))
		release()
		n.tells("ensure changed")
		n.ask(n.request("r2", "motd", "y", ""))
		c.holds(nil)
		release()
		n.tells("ensure changed", "health critical", "transaction failed exec#restart", "run failed group.all.shop health")
	})
	held(t, func(n *node, c *clinic, release func()) {
		n.ask(n.request("r1", "motd", "x", `"noop": true,`))
		c.holds(nil)
		release()
		n.tells("ensure noop", "health critical", "transaction failed exec#restart", "run failed group.all.shop health")
	})
}

// TestRunBreaksItsChecksOff: it makes them itself.
func TestRunBreaksItsChecksOff(t *testing.T) {
	held(t, func(n *node, c *clinic, _ func()) {
		c.holds(nil)
		c.set("http", model.HealthOK)
		n.bucket.put("group.all.shop", "# another\n"+n.shop())
		n.settle()
		n.tells("run stable group.all.shop manifest")
		if c.broken != 1 {
			t.Errorf("%d were broken off", c.broken)
		}
	})
}

func TestUnassigningBreaksItsChecksOff(t *testing.T) {
	held(t, func(n *node, c *clinic, _ func()) {
		n.bucket.remove("group.all.shop")
		n.settle()
		n.tells("node unassigned")
		if c.broken != 1 || n.restarts() != 0 {
			t.Errorf("%d were broken off, %d refreshes", c.broken, n.restarts())
		}
	})
}

func TestStoppingBreaksChecksOff(t *testing.T) {
	held(t, func(n *node, c *clinic, _ func()) {
		n.stop()
		n.tells()
		if c.broken != 1 {
			t.Errorf("%d were broken off", c.broken)
		}
	})
}
