package agent_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

// clinic makes health checks: what a check is called has the status it was set to.
type clinic struct {
	mu       sync.Mutex
	statuses map[string]model.HealthStatus
	made     int
	// hold, when set, holds checks named http until it is written to.
	hold chan struct{}
	// broken is how many checks were broken off.
	broken int
}

func (c *clinic) holds(hold chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = hold
}

func (c *clinic) set(name string, s model.HealthStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses[name] = s
}

// since gives how many checks were made since it was asked last.
func (c *clinic) since() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.made
	c.made = 0

	return n
}

// CheckAll sees the resources as they were at its start.
func (c *clinic) CheckAll(ctx context.Context, checks []model.HealthCheck, _ []string) []model.HealthResult {
	out := make([]model.HealthResult, len(checks))
	for i, check := range checks {
		out[i] = c.check(ctx, check)
	}

	return out
}

func (c *clinic) check(ctx context.Context, check model.HealthCheck) model.HealthResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	out := model.HealthResult{Name: check.Name, Format: check.Format, Tries: 1, Status: cmp.Or(c.statuses[check.Name], model.HealthOK), Output: "it is"}
	if hold := c.hold; hold != nil && check.Name == "http" {
		c.mu.Unlock()
		defer c.mu.Lock()
		select {
		case <-hold:
		case <-ctx.Done():
			c.mu.Lock()
			defer c.mu.Unlock()
			c.broken++
			out.Status = "" // it was not made
		}
	}

	return out
}

// monitored is a node with one resource that has two checks and writes a line at each refresh.
func monitored(t *testing.T, interval time.Duration, f func(n *node, c *clinic)) {
	t.Helper()
	bubble(t, func(_ *testing.T, n *node) {
		c := &clinic{statuses: map[string]model.HealthStatus{}}
		n.checker = c
		n.config.HealthInterval, n.config.Interval = model.Duration(interval), model.Duration(time.Hour)
		n.start()
		n.bucket.put("group.all.shop", n.shop())
		f(n, c)
	})
}

func (n *node) shop() string {
	return fmt.Sprintf("muster: {resources: [{exec: [{restart: {command: \"sh -c 'echo x >>%s'\", refresh_only: true, health_checks: [{name: http, command: a, on_critical: refresh}, {name: disk, command: b}]}}]}]}\n", n.path("restarts"))
}

func (n *node) restarts() int {
	n.t.Helper()
	text, err := os.ReadFile(n.path("restarts"))
	if err != nil && !os.IsNotExist(err) {
		n.t.Fatal(err)
	}

	return strings.Count(string(text), "x")
}

// TestChecksOfAnOverriddenManifestDoNotCount: they no longer run.
func TestChecksOfAnOverriddenManifestDoNotCount(t *testing.T) {
	monitored(t, time.Minute, func(n *node, c *clinic) {
		c.set("disk", model.HealthWarning)
		n.after(2 * time.Minute)
		if got := n.agent.State().Health; got != (model.HealthCounts{OK: 1, Warning: 1}) {
			t.Fatalf("the health is %+v", got)
		}
		n.put("node.web01_example_net.shop", "motd", "x")
		if got := n.agent.State().Health; got != (model.HealthCounts{}) {
			t.Errorf("the health is %+v", got)
		}
		n.bucket.remove("node.web01_example_net.shop")
		n.after(2 * time.Minute)
		if got := n.agent.State().Health; got != (model.HealthCounts{OK: 1, Warning: 1}) {
			t.Errorf("in force again, the health is %+v", got)
		}
	})
}

func TestHealthIsReportedWhenItChanges(t *testing.T) {
	monitored(t, time.Minute, func(n *node, c *clinic) {
		n.tells("health ok", "health ok", "run stable group.all.shop manifest")
		n.after(90 * time.Second)
		if made := c.since(); made != 4 {
			t.Errorf("%d checks were made", made)
		}
		n.tells()
		c.set("disk", model.HealthWarning)
		n.after(time.Minute)
		reports := n.take()
		if len(reports) != 1 || reports[0].Kind != model.KindHealth || reports[0].Outcome != "warning" || reports[0].Type != model.ProtocolHealth || reports[0].Manifest != "group.all.shop" {
			t.Fatalf("%+v", reports)
		}
		var got model.HealthReport
		n.decode(reports[0], &got)
		want := model.HealthReport{
			Protocol: model.ProtocolHealth, Node: "web01_example_net", Manifest: "group.all.shop", Resource: model.Ref{Type: "exec", Name: "restart"},
			Check: "disk", Status: "warning", Was: "ok", Output: "it is", At: got.At, RunID: got.RunID,
		}
		if got != want || got.At.IsZero() || got.RunID == "" {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		if h := n.agent.State().Health; h != (model.HealthCounts{OK: 1, Warning: 1}) {
			t.Errorf("%+v", h)
		}
		if n.restarts() != 0 {
			t.Errorf("it was refreshed")
		}
	})
}

func TestCriticalCheckMakesARepairingRun(t *testing.T) {
	monitored(t, time.Minute, func(n *node, c *clinic) {
		n.take()
		c.set("http", model.HealthCritical)
		n.after(70 * time.Second)
		n.tells("health critical", "transaction failed exec#restart", "run failed group.all.shop health")
		if n.restarts() != 1 {
			t.Errorf("%d refreshes", n.restarts())
		}
		c.set("http", model.HealthOK)
		n.after(70 * time.Second)
		n.tells("health ok", "run stable group.all.shop health")
		if got := n.agent.State().Manifests["group.all.shop"].Outcome; got != model.OutcomeStable {
			t.Errorf("it is well again, and the node says %s", got)
		}
		// It is well again, so the next trouble is seen to at once.
		c.set("http", model.HealthCritical)
		n.after(70 * time.Second)
		if n.restarts() != 2 {
			t.Errorf("%d refreshes", n.restarts())
		}
	})
}

func TestRepairThatHelps(t *testing.T) {
	monitored(t, time.Minute, func(n *node, c *clinic) {
		n.take()
		c.set("http", model.HealthCritical)
		go func() {
			for n.restarts() == 0 {
				<-time.After(time.Second)
			}
			c.set("http", model.HealthOK)
		}()
		n.after(3 * time.Minute)
		if n.restarts() == 0 || n.agent.State().Health.Critical != 0 {
			t.Errorf("%d refreshes, %+v", n.restarts(), n.agent.State().Health)
		}
	})
}

// TestRepairsThatDoNotHelpAreSpread has an hour of trouble.
func TestRepairsThatDoNotHelpAreSpread(t *testing.T) {
	monitored(t, 2*time.Second, func(n *node, c *clinic) {
		c.set("http", model.HealthCritical)
		n.after(time.Hour)
		if got := n.restarts(); got < 10 || got > 40 {
			t.Errorf("%d refreshes in an hour", got)
		}
	})
}

// TestRunsThatDoNotComeToTheCheckAreSpread: they repair no more than those that fail.
func TestRunsThatDoNotComeToTheCheckAreSpread(t *testing.T) {
	monitored(t, 2*time.Second, func(n *node, c *clinic) {
		n.bucket.put("group.all.shop", strings.Replace(n.shop(), "refresh_only", "drift: ignore, refresh_only", 1))
		n.settle()
		c.set("http", model.HealthCritical)
		n.take()
		n.after(time.Hour)
		if got := len(n.take()); got < 10 || got > 40 {
			t.Errorf("%d reports in an hour", got)
		}
	})
}

func TestCriticalWithoutRefresh(t *testing.T) {
	monitored(t, time.Minute, func(n *node, c *clinic) {
		n.take()
		c.set("disk", model.HealthCritical)
		n.after(70 * time.Second)
		n.tells("health critical", "transaction failed exec#restart", "run failed group.all.shop health")
		if n.restarts() != 0 {
			t.Errorf("it was refreshed")
		}
	})
}

func TestMonitoringIsOff(t *testing.T) {
	monitored(t, 0, func(n *node, c *clinic) {
		n.settle()
		c.since()
		n.after(50 * time.Minute)
		if made := c.since(); made != 0 {
			t.Errorf("%d checks were made", made)
		}
		n.after(20 * time.Minute)
		if made := c.since(); made != 2 {
			t.Errorf("%d checks were made by the run on the interval", made)
		}
	})
}

func TestMonitoringIsSwitchedOnByAReload(t *testing.T) {
	monitored(t, 0, func(n *node, c *clinic) {
		n.settle()
		c.since()
		config := n.agent.Config()
		config.HealthInterval = model.Duration(time.Minute)
		if applied, _, err := n.agent.Reload(t.Context(), config); err != nil || len(applied) != 1 {
			t.Fatal(applied, err)
		}
		n.after(90 * time.Second)
		if made := c.since(); made == 0 {
			t.Error("no checks were made")
		}
	})
}

func TestUnassignedManifestIsNotMonitored(t *testing.T) {
	monitored(t, time.Minute, func(n *node, c *clinic) {
		n.settle()
		c.set("disk", model.HealthCritical)
		n.after(2 * time.Minute)
		n.bucket.remove("group.all.shop")
		n.settle()
		c.since()
		n.after(10 * time.Minute)
		if made := c.since(); made != 0 {
			t.Errorf("%d checks were made", made)
		}
		if h := n.agent.State().Health; h != (model.HealthCounts{}) {
			t.Errorf("%+v", h)
		}
	})
}

func TestChecksThatWentAreForgotten(t *testing.T) {
	monitored(t, time.Minute, func(n *node, c *clinic) {
		n.settle()
		n.bucket.put("group.all.shop", strings.Replace(n.shop(), ", {name: disk, command: b}", "", 1))
		n.settle()
		if h := n.agent.State().Health; h != (model.HealthCounts{OK: 1}) {
			t.Errorf("%+v", h)
		}
	})
}

func TestNoopAssignmentIsNotMonitored(t *testing.T) {
	monitored(t, time.Minute, func(n *node, c *clinic) {
		n.bucket.put("group.all.shop", n.assignment("noop: true", n.shop()))
		n.settle()
		c.since()
		n.after(10 * time.Minute)
		if made := c.since(); made != 0 {
			t.Errorf("%d checks were made", made)
		}
	})
}

// TestPassBesideARepairDoesNotCount: its finding may be the reason of the repair.
func TestPassBesideARepairDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		c := &clinic{statuses: map[string]model.HealthStatus{}}
		n.checker, n.config.HealthInterval, n.config.Interval = c, model.Duration(time.Minute), model.Duration(time.Hour)
		n.start()
		n.bucket.put("group.all.files", n.with("", "a", "content: one, health_checks: [{name: http, command: a}]"))
		n.settle()
		n.take()
		hold := make(chan struct{})
		c.holds(hold)
		n.write("a", "drifted")
		c.holds(nil)
		c.set("http", model.HealthCritical)
		n.after(2 * time.Minute)
		c.set("http", model.HealthOK)
		close(hold)
		n.tells("transaction changed file#a", "run changed group.all.files drift")
	})
}
