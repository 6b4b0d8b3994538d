package fleetcmd

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestAwaitReadsNothingWithoutNodes changes a group without known nodes. Without a permission to read the nodes,
// await returns no error.
func TestAwaitReadsNothingWithoutNodes(t *testing.T) {
	t.Parallel()
	_, kv := kvtest.New(t)
	kv.Conn.Close()
	c := controlCommand{Env: &cli.Env{}, timeout: kvtest.Deadline}
	found := opened{store: &Store{KV: kv.Store}}
	if err := c.await(t.Context(), found, []*written{newWritten("group.future.pause", 1, fleet.Target{Group: "future"}, "paused")}); err != nil {
		t.Error(err)
	}
}

// TestFailedComparisonNamesNodes checks that the error names the nodes that run the assignment.
func TestFailedComparisonNamesNodes(t *testing.T) {
	t.Parallel()
	_, kv := kvtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var nodes []model.Node
	for _, name := range []string{"web01", "web02"} {
		nodes = append(nodes, model.Node{NodeState: model.NodeState{Node: name, Groups: []string{"web"}, Manifests: map[string]model.ManifestState{"group.web.motd": {Revision: 1}}}})
	}
	c := pushCommand{Env: &cli.Env{}}
	err := c.checkConflicts(ctx, &Store{Assignments: kvstore.NewAssignments(kv.Store), KV: kv.Store}, assign.Push{Name: "other", Targets: []fleet.Target{{Group: "web"}}}, nodes)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "cannot compare with group.web.motd, which is active on web01, web02: ") {
		t.Error(err)
	}
}
