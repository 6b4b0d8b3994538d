package kvstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestAServerWithoutRoom tests that the error of a message that the server refuses or cannot write names the server and
// /healthz, and when messages are stored again.
func TestAServerWithoutRoom(t *testing.T) {
	t.Parallel()
	t.Run("limit", func(t *testing.T) {
		t.Parallel()
		srv := natstest.Start(t, natstest.WithMaxStore(64<<20))
		store := provisioned(t, srv)
		free := kvtest.FillServer(t, store)
		server := store.Conn.ConnectedServerName()
		for what, err := range map[string]error{"state": putState(t, store), "report": kvtest.Publish(t.Context(), store, kvtest.Outgoing("web01", model.KindRun, model.OutcomeStable, 1))} {
			if !errors.Is(err, kvstore.ErrNoRoom) || !strings.Contains(err.Error(), server) || !strings.Contains(err.Error(), "/healthz") {
				t.Errorf("%s: %v", what, err)
			}
		}
		free()
		if err := putState(t, store); err != nil {
			t.Errorf("after room was freed: %v", err)
		}
	})
	t.Run("write error", func(t *testing.T) {
		t.Parallel()
		srv := natstest.Start(t)
		store := provisioned(t, srv)
		mend := kvtest.FailWrites(t, srv, store, kvstore.KVStream(store.Names.Nodes))
		want := "KV_MUSTER_NODES does not store messages: free disk space, check /healthz of its server " + store.Conn.ConnectedServerName() + ", and restart the server if it still refuses writes"
		if err := putState(t, store); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		mend()
		if err := putState(t, store); err == nil {
			t.Error("nats-server stores messages again without a restart: docs/guides/troubleshooting.md says that it does not")
		}
		srv.Restart(t)
		kvtest.Eventually(t, "stored after the restart", func() (bool, string) {
			err := putState(t, store)
			return err == nil, errorText(err)
		})
	})
}

// provisioned returns the store of a small server.
func provisioned(t *testing.T, srv *natstest.Server) *kvtest.Store {
	t.Helper()
	store := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(srv.Connect(t), "") })
	if _, err := store.Apply(t.Context(), provision.Options{ReportBytes: 8 << 20}); err != nil {
		t.Fatal(err)
	}

	return store
}

func putState(t *testing.T, store *kvtest.Store) error {
	t.Helper()

	return store.PutState(t.Context(), model.NodeState{Node: "web01"}, 0)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}
