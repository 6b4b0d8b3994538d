package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestAStreamThatDoesNotAnswer: commands that do not need it work, with a warning.
func TestAStreamThatDoesNotAnswer(t *testing.T) {
	servers := natstest.StartCluster(t, "")
	urls := strings.Join([]string{servers[0].URL(), servers[1].URL(), servers[2].URL()}, ",")
	state := filepath.Join(t.TempDir(), "state")
	run := func(args ...string) (int, string) {
		return start(t, state, append([]string{"--server", urls, "fleet"}, args...)...).wait()
	}
	await(t, "provisioned", func() bool { code, _ := run("init", "--yes", "--replicas", "3"); return code == 0 })
	m := kvtest.Manager(t, servers[0])
	kvtest.Update(t, m, "MUSTER_REGISTRATIONS", func(c *api.StreamConfig) { c.Replicas = 1 })
	start(t, filepath.Join(t.TempDir(), "state"), "agent", "run", "--config-dir", t.TempDir(), "--node", "n1", "--group", "web", "--server", urls)
	await(t, "the node is known", func() bool { _, text := run("nodes"); return strings.Contains(text, "n1") })
	var holder int
	await(t, "one server has it", func() bool {
		stream, err := m.LoadStream("MUSTER_REGISTRATIONS")
		if err != nil {
			return false
		}
		info, err := stream.Information()
		if err != nil || len(info.Cluster.Replicas) > 0 {
			return false
		}
		_, err = fmt.Sscanf(info.Cluster.Leader, "n%d", &holder)
		return err == nil
	})
	servers[holder].Stop()
	const warning = "stream MUSTER_REGISTRATIONS: its servers do not answer"
	for _, args := range [][]string{{"exec", "--node", "n1", "--", "true"}, {"pause", "n1"}, {"status"}} {
		await(t, fmt.Sprint(args, " with a warning"), func() bool {
			code, text := run(args...)
			if strings.Contains(text, "muster: "+warning) || strings.Contains(text, "provision: "+warning) {
				t.Fatalf("%v: %s", args, text)
			}
			return code == 0 && strings.Contains(text, warning)
		})
	}
}
