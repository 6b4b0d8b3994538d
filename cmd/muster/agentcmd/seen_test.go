package agentcmd

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/permissions"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestWhatIsTakenIsOnDiskThoughAFamilyCannotBeRead: a node may read the group web
// only, and is in db too.
func TestWhatIsTakenIsOnDiskThoughAFamilyCannotBeRead(t *testing.T) {
	permissions, err := permissions.Of("", "web01", []string{"web"})
	if err != nil {
		t.Fatal(err)
	}
	srv := natstest.Start(t, natstest.WithConfig("accounts: {FLEET: {jetstream: enabled, users: [\n{user: admin, password: admin}\n{user: web01, password: web01, "+permissions.ServerConfig()+"}\n]}}"))
	admin, err := kvtest.Of(srv.Connect(t, nats.UserInfo("admin", "admin")), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	store, err := kvtest.Of(srv.Connect(t, nats.UserInfo("web01", "web01"), nats.CustomInboxPrefix(admin.Names().InboxPrefix("web01"))), "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := watch.NewNode(store.Store, watch.Options{Node: "web01", Groups: []string{"web", "db"}}, seen{host: host.New(host.Options{StateDir: dir}), log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, func([]string) {}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for _, value := range []string{"one", "two"} {
		if _, err := admin.Put(t.Context(), "group.all.motd", []byte(value)); err != nil {
			t.Fatal(err)
		}
		limit, tick := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
		defer tick.Stop()
		for onDisk := ""; onDisk != value; {
			var kept watch.Memory
			if text, err := os.ReadFile(filepath.Join(dir, "seen.json")); err == nil && json.Unmarshal(text, &kept) == nil {
				onDisk = string(kept.Entries["group.all.motd"].Value)
			}
			select {
			case <-tick.C:
			case <-limit:
				t.Fatalf("%q is on disk, want %q", onDisk, value)
			}
		}
	}
}
