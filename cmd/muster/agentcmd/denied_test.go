package agentcmd_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/actor"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/kvtest"
)

func TestMain(m *testing.M) { actor.Main(m, fleetsim.Roles()) }

// TestSubscriptionsComeBack: permissions that were wrong for a while cost a node
// nothing once they are right. The server ends a subscription, and never accepts
// it again on that connection.
func TestSubscriptionsComeBack(t *testing.T) {
	t.Parallel()
	right := "accounts: {FLEET: {jetstream: enabled, users: [\n{user: admin, password: admin}\n{user: web01, password: web01, " + kvtest.Guarded{API: kvstore.OwnAPI}.Permissions(t, "web01").ServerConfig() + "}\n]}}"
	wrong := strings.NewReplacer(`"muster.changed.`, `"other.changed.`, `"muster.ping.`, `"other.ping.`, `DIRECT.GET.MUSTER_COMMANDS.`, `DIRECT.GET.OTHER.`).Replace(right)
	if right == wrong {
		t.Fatal(right)
	}
	srv := fleetsim.StartServer(t, right)
	url := func(user string) string { return strings.Replace(srv.URL(t), "//", "//"+user+":"+user+"@", 1) }
	nc, err := nats.Connect(url("admin"), nats.Timeout(kvtest.Deadline))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	admin, err := kvtest.Of(nc, "")
	if err == nil {
		_, err = admin.Apply(t.Context(), provision.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := config.Default("web01")
	c.Groups = kvtest.GroupsOf["web01"]
	c.StateDir, c.FactsDir = filepath.Join(dir, "state"), filepath.Join(dir, "facts")
	c.NATS.Servers = []string{url("web01")}
	var log hosttest.LogText
	n, err := agentcmd.NewNode(t.Context(), c, agentcmd.NodeOptions{Types: resources.All(), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx, ctx) }()
	message := func(want string) {
		t.Helper()
		kvtest.Eventually(t, "state of the node", func() (bool, string) {
			found, err := admin.State(t.Context(), "web01")
			return err == nil && !found.Started.IsZero() && (found.Message == "") == (want == "") && strings.Contains(found.Message, want), fmt.Sprint(found.Message, err)
		})
	}
	revision := func() uint64 {
		t.Helper()
		revision, err := admin.Put(t.Context(), "node.web01.motd", []byte("muster: {}"))
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	active := func(want uint64) {
		t.Helper()
		kvtest.Eventually(t, "the assignment", func() (bool, string) {
			found, err := admin.State(t.Context(), "web01")
			return err == nil && found.Manifests["node.web01.motd"].Revision == want, fmt.Sprint(found.Manifests, err)
		})
	}
	active(revision())
	message("")
	srv.Reload(t, wrong)
	message("not permitted to subscribe to muster.")
	kvtest.Eventually(t, "another denial", func() (bool, string) {
		return strings.Contains(log.String(), `level=DEBUG msg="subscription still denied, will reconnect" node=web01 in=`), log.String()
	})
	srv.Reload(t, right)
	message("")
	active(revision())
	kvtest.Answers(t, admin, admin.Names.Request(kvstore.VerbPing, "node.web01"), nil, 1)
	kvtest.Eventually(t, "the end of it", func() (bool, string) {
		return strings.Contains(log.String(), "subscriptions permitted again") && strings.Contains(log.String(), "reading commands again"), log.String()
	})
	var shown []string
	for line := range strings.Lines(log.String()) {
		_, event, _ := strings.Cut(line, "level=")
		event, _, _ = strings.Cut(event, " node=web01")
		event, _, _ = strings.Cut(event, " server=")
		if strings.Contains(event, "subscription") || strings.Contains(event, "connect") || strings.Contains(event, "commands") {
			shown = append(shown, strings.TrimSpace(event))
		}
	}
	shown = slices.DeleteFunc(shown, func(event string) bool {
		return strings.HasPrefix(event, "DEBUG") || strings.Contains(event, "permission denied")
	})
	slices.Sort(shown)
	want := []string{`INFO msg="connected to NATS"`, `INFO msg="reading commands again"`, `INFO msg="subscriptions permitted again"`, `WARN msg="cannot read commands, will retry"`, `WARN msg="subscription denied, will reconnect"`}
	if !slices.Equal(shown, want) {
		t.Errorf("shown is\n%s\nof\n%s", strings.Join(shown, "\n"), log.String())
	}
	const remedy = "give the node what `muster fleet permissions web01 --groups web` prints"
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "level=WARN msg=\"subscription denied") && !(strings.Contains(line, remedy) && strings.Contains(line, "restart the agent")) || strings.Contains(line, "level=WARN msg=\"cannot read commands") && !strings.Contains(line, remedy) {
			t.Errorf("no remedy: %s", line)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
