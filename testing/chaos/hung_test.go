package chaos

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestOneHungServer stops one of three servers, which keeps its connections: first the leader of the assignments, then the
// server of the client. Reads and writes continue, the cluster stores each write once, and names the silent server.
func TestOneHungServer(t *testing.T) {
	t.Parallel()
	servers, admin := startServers(t, 3)
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.url)
	}
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: urls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	store := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(nc, "") })
	for _, node := range []string{"a", "b", "c"} {
		if err := admin.PutState(t.Context(), model.NodeState{Node: node}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	const key = "group.web.app"
	stored := map[string]int{}
	for round, name := range []func() string{
		func() string {
			var last []model.LastStored
			kvtest.Eventually(t, "the bucket has a leader", func() (bool, string) {
				last, err = store.Store.LastStored(t.Context(), "KV_MUSTER_MANIFESTS")
				return err == nil && len(last) == 1, fmt.Sprint(last, err)
			})
			return last[0].Server
		},
		nc.ConnectedServerName,
	} {
		wanted := name()
		hung := servers[slices.IndexFunc(servers, func(s *natsServer) bool { return s.name == wanted })]
		hung.signal(syscall.SIGSTOP)
		last := ""
		kvtest.Eventually(t, "a value is stored", func() (bool, string) {
			last = fmt.Sprint(round, " ", len(stored))
			stored[last]++
			_, err := store.Put(t.Context(), key, []byte(last))
			return err == nil, fmt.Sprint(err)
		})
		kvtest.Eventually(t, "the states of all nodes are read", func() (bool, string) {
			all, err := store.Nodes(t.Context())
			return err == nil && len(all) == 3, fmt.Sprint(len(all), err)
		})
		kvtest.Eventually(t, "the value is read", func() (bool, string) {
			e, err := store.Current(t.Context(), key)
			return err == nil && string(e.Value) == last, fmt.Sprint(string(e.Value), err)
		})
		kvtest.Eventually(t, "the silent server is named", func() (bool, string) {
			silent, err := store.Store.SilentServers(t.Context())
			_, is := silent[hung.name]
			return is && len(silent) == 1, fmt.Sprint(silent, err)
		})
		kvtest.Eventually(t, "a command names it once", func() (bool, string) {
			printed := warnings(t, urls)
			return strings.Count(printed, "the server "+hung.name+" does not answer") == 1, printed
		})
		if nc.ConnectedServerName() == hung.name {
			t.Errorf("the client is still connected to %s", hung.name)
		}
		hung.signal(syscall.SIGCONT)
		kvtest.Eventually(t, "the server answers again", func() (bool, string) {
			silent, err := store.Store.SilentServers(t.Context())
			return err == nil && len(silent) == 0, fmt.Sprint(silent, err)
		})
	}
	var all []model.Entry
	// The server that was stopped may answer before it has caught up.
	kvtest.Eventually(t, "the history has the last value", func() (bool, string) {
		all, err = store.History(t.Context(), key)
		return err == nil && len(all) > 0 && strings.HasPrefix(string(all[len(all)-1].Value), "1 "), fmt.Sprint(len(all), err)
	})
	found := map[string]int{}
	for _, e := range all {
		if found[string(e.Value)]++; found[string(e.Value)] > 1 {
			t.Errorf("value %q is stored %d times", e.Value, found[string(e.Value)])
		}
	}
	if len(found) < 2 {
		t.Errorf("the history is %v", found)
	}
}

// warnings returns what a command logs when it opens the fleet, or its error.
func warnings(t *testing.T, servers []string) string {
	t.Helper()
	var log bytes.Buffer
	env := &cli.Env{Log: slog.New(slog.NewTextHandler(&log, nil))}
	env.Flags.Connect.Servers = servers
	defer env.Close()
	if _, err := fleetcmd.Open(t.Context(), env); err != nil {
		return err.Error()
	}

	return log.String()
}
