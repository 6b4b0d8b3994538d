//go:build system

package browser

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/kvtest"
)

// obedient is a node with an agent, beside the simulated ones.
const obedient = "canary01"

// TestActions acts on a fleet in Chromium, by keyboard alone: an agent, beside 60 simulated ones.
func TestActions(t *testing.T) {
	srv, store := kvtest.New(t)
	w := &world{t: t, store: store}
	for key, manifest := range assigned() {
		w.put(key, manifest)
	}
	dir := t.TempDir()
	w.put("node."+obedient+".motd", fmt.Sprintf("muster: {resources: [{file: [{%s/motd: {content: hello, owner: \"%d\", group: \"%d\", mode: \"0644\"}}]}]}\n", dir, os.Geteuid(), os.Getegid()))
	startAgent(t, srv.URL(), dir)
	fleetsim.Simulate(t, connect.Options{Servers: []string{srv.URL()}}, fleetcmd.SimulateOptions{Plan: simulate.Plan{Nodes: 60, Seed: 3, RunTime: time.Millisecond}})
	tokens := filepath.Join(dir, "tokens")
	read, operate := token(t, tokens, access.Read, "wall"), token(t, tokens, access.Operate, "anna")
	w.url, w.token = run(t, "--server", srv.URL(), "fleet", "serve", "--listen", "127.0.0.1:0", "--tokens", tokens, "--actions"), read
	kvtest.Eventually(t, "the dashboard shows the fleet", func() (bool, string) {
		var o view.Overview
		w.get("overview", &o)
		return o.Total == 61 && o.Progress.History, fmt.Sprint(o.Total, o.States, o.Progress)
	})
	browse(t, "actions.mjs", "BASE="+w.url, "NODE="+obedient, "OPERATE="+operate, "READ="+read)
}

// token adds a token to a file, and returns it.
func token(t *testing.T, path string, role access.Role, name string) string {
	t.Helper()
	secret, line, err := access.NewToken(role, name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(line); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	return secret
}

// startAgent runs an agent until the test ends.
func startAgent(t *testing.T, server, dir string) {
	t.Helper()
	c := config.Default(obedient)
	c.StateDir, c.FactsDir = filepath.Join(dir, "state"), filepath.Join(dir, "facts")
	c.Groups, c.Labels = []string{"canary"}, map[string]string{"rack": "a3"}
	c.NATS.Servers = []string{server}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	n, err := agentcmd.NewNode(ctx, c, agentcmd.NodeOptions{Types: resources.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		err := n.Run(ctx, ctx)
		n.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !strings.Contains(err.Error(), context.Canceled.Error()) {
			t.Errorf("the agent ended with %v", err)
		}
	})
}
