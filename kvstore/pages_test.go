package kvstore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/testing/natstest"
)

// A server that always has more does not keep its client busy for good, nor fill its
// memory.
func TestListsEnd(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	const prefix = kvstore.API("lying.API")
	server := srv.Connect(t)
	answers := func(subject string, page func(n int) any) {
		t.Helper()
		asked := 0
		_, err := server.Subscribe(subject, func(m *nats.Msg) {
			if asked++; asked > 5_000 {
				return // long after the test has failed
			}
			data, err := json.Marshal(page(asked))
			if err == nil {
				err = m.Respond(data)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	const many = 1 << 30
	answers(prefix.StreamList(), func(n int) any {
		return api.JSApiStreamListResponse{
			JSApiIterableResponse: api.JSApiIterableResponse{Total: many},
			Streams:               []*api.StreamInfo{{Config: api.StreamConfig{Name: fmt.Sprint("S", n)}}},
		}
	})
	answers(prefix.StreamInfo("S"), func(n int) any {
		return map[string]any{
			"type": "io.nats.jetstream.api.v1.stream_info_response", "total": many, "config": map[string]any{"name": "S"},
			"state": map[string]any{"subjects": map[string]int{fmt.Sprint("s.", n): 1}},
		}
	})
	if err := server.FlushTimeout(kvstore.RequestTimeout); err != nil {
		t.Fatal(err)
	}
	store, err := kvstore.Open(t.Context(), connect.Options{Servers: []string{srv.URL()}, APIPrefix: string(prefix)}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Conn().Close)
	if found, err := store.Infos(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "more than 100 pages of streams") {
		t.Errorf("%d streams, %v", len(found), err)
	}
	if listed, err := store.Subjects(t.Context(), "S", "s.*"); err == nil || !strings.Contains(err.Error(), "more than 10 pages of subjects") {
		t.Errorf("%d subjects, %v", len(listed.Subjects), err)
	}
}
