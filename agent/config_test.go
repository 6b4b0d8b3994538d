package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/model"
)

func TestReload(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		n.config.Interval = model.Duration(time.Hour)
		n.start()
		n.put("group.all.motd", "motd", "x")
		n.take()
		next := n.config
		next.Interval = model.Duration(10 * time.Minute)
		next.Groups = []string{"db"}
		next.Log.Level = "debug"
		next.Node, next.StateDir, next.NATS.Servers = "other", "/elsewhere", []string{"nats://x"}
		applied, restart, err := n.agent.Reload(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(applied, []string{"groups", "interval", "log.level"}) || !slices.Equal(restart, []string{"node", "state_dir", "nats.servers"}) {
			t.Errorf("applied %q, need a restart %q", applied, restart)
		}
		if got := n.agent.Config(); got.Node != "web01_example_net" || got.StateDir != n.state || got.Interval.Std() != 10*time.Minute {
			t.Errorf("the configuration is %+v", got)
		}
		if !slices.Equal(bucket.groups, []string{"db"}) {
			t.Errorf("the groups are %q", bucket.groups)
		}
		n.put("group.db.new", "new", "of the new group")
		n.put("group.web.old", "old", "of the old group")
		n.has("new", "of the new group")
		n.lacks("old")
		n.take()
		n.after(time.Hour)
		if runs := len(n.take()); runs < 8 {
			t.Errorf("%d runs of two manifests in an hour", runs)
		}

		next.Interval = 0
		if _, _, err := n.agent.Reload(t.Context(), next); err == nil || !strings.Contains(err.Error(), "interval") {
			t.Errorf("got %v", err)
		}
		if n.agent.Config().Interval.Std() != 10*time.Minute {
			t.Error("a configuration that is not valid changed something")
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.config.Node = "a.b"
		if _, err := agent.New(t.Context(), n.options()); err == nil || !strings.Contains(err.Error(), "not a valid node id") {
			t.Errorf("got %v", err)
		}
	})
}
