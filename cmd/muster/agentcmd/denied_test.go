package agentcmd_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/jsapi"
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
	right := "accounts: {FLEET: {jetstream: enabled, users: [\n{user: admin, password: admin}\n{user: web01, password: web01, " + kvtest.Guarded{API: jsapi.Own}.Permissions(t, "web01").ServerConfig() + "}\n]}}"
	wrong := strings.NewReplacer(`"muster.changed.`, `"other.changed.`, `"muster.ping.`, `"other.ping.`).Replace(right)
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
	n, err := agentcmd.NewNode(t.Context(), resources.All(), slog.New(slog.NewTextHandler(&log, nil)), c)
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
	kvtest.Eventually(t, "the log tells when it connects again, and how to have it at once", func() (bool, string) {
		return strings.Contains(log.String(), `msg="subscription still denied, will reconnect" node=web01 in=`) && strings.Contains(log.String(), "restart the agent"), log.String()
	})
	srv.Reload(t, right)
	message("")
	active(revision())
	kvtest.Answers(t, admin, admin.Names().Request(kvstore.VerbPing, "node.web01"), nil, 1)
	if got := strings.Count(log.String(), "subscription denied, will reconnect"); got != 1 {
		t.Errorf("%d lines about it:\n%s", got, log.String())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
