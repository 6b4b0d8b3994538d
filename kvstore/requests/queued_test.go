package requests_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestQueued: the requests of one id, by family; what replaced one is there in its place.
func TestQueued(t *testing.T) {
	t.Parallel()
	const id = "restart nginx.1"
	srv, store := kvtest.New(t)
	put := func(family, id, data string) {
		t.Helper()
		if err := store.PutCommand(t.Context(), family, id, []byte(data), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := store.Queued(t.Context(), id); err != nil || len(got) != 0 {
		t.Errorf("of an empty queue: %v, %v", got, err)
	}
	put("node.web01", id, "first")
	put("node.web01", id, "second")
	put("group.web", id, "for all")
	put("node.web02", "another", "x")
	srv.Raw(t, "muster.command.node.web03."+kvstore.Token(id), "NATS/1.0\r\nfoo\r\n\r\n", "unreadable")
	got, err := store.Queued(t.Context(), id)
	texts := map[string]string{}
	for family, data := range got {
		texts[family] = string(data)
	}
	if want := map[string]string{"node.web01": "second", "group.web": "for all"}; err != nil || !maps.Equal(texts, want) {
		t.Errorf("queued are %v, %v", texts, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := store.Queued(ended, id); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := kvtest.Manager(t, srv).DeleteStream("MUSTER_COMMANDS"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Queued(t.Context(), id); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("without the stream: %v", err)
	}
}
