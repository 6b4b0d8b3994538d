package kvstore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// A server that always has more does not keep its client busy for good, nor fill its
// memory.
func TestListsEnd(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	const prefix = kvstore.APIPrefix("lying.API")
	server := srv.Connect(t)
	answers := func(subject string, page func(n int) any) {
		t.Helper()
		asked := 0
		natstest.Answer(t, server, subject, func(m *nats.Msg) error {
			if asked++; asked > 5_000 {
				return nil // long after the test has failed
			}
			data, err := json.Marshal(page(asked))
			if err != nil {
				return err
			}

			return m.Respond(data)
		})
	}
	const many = 1 << 30
	answers(prefix.StreamList(), func(n int) any {
		return api.JSApiStreamListResponse{
			JSApiResponse:         api.JSApiResponse{Type: "io.nats.jetstream.api.v1.stream_list_response"},
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

// TestPagesOfListsAreBounded: a page that is longer than a server sends one is refused,
// before it takes many times as much memory as it has bytes.
func TestPagesOfListsAreBounded(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.WithConfig("max_payload: 32MB"))
	const prefix = kvstore.APIPrefix("lying.API")
	server := srv.Connect(t)
	of := func(how string, count int, text func(n int) string) string {
		parts := make([]string, count)
		for n := range parts {
			parts[n] = text(n)
		}

		return fmt.Sprintf(how, strings.Join(parts, ","))
	}
	const info = `{"type":"io.nats.jetstream.api.v1.stream_info_response","total":1,"config":{"name":"S"},"state":{"subjects":{%s}}}`
	subject := func(n int) string { return fmt.Sprintf(`"s.%d":1`, n) }
	var answers atomic.Pointer[string]
	for _, asked := range []string{prefix.StreamList(), prefix.StreamInfo("S")} {
		natstest.Answer(t, server, asked, func(m *nats.Msg) error { return m.Respond([]byte(*answers.Load())) })
	}
	store, err := kvstore.Open(t.Context(), connect.Options{Servers: []string{srv.URL()}, APIPrefix: string(prefix)}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Conn().Close)
	infos := func() (int, error) {
		found, err := store.Infos(t.Context(), "")
		return len(found), err
	}
	subjects := func() (int, error) {
		listed, err := store.Subjects(t.Context(), "S", "s.*")
		return len(listed.Subjects), err
	}
	tests := map[string]struct {
		answer string
		list   func() (int, error)
		want   int // none where it is refused
	}{
		"as many streams as a server sends":  {of(`{"type":"io.nats.jetstream.api.v1.stream_list_response","total":1,"streams":[%s]}`, 256, func(n int) string { return fmt.Sprintf(`{"config":{"name":"S%d"}}`, n) }), infos, 256},
		"one more":                           {of(`{"type":"io.nats.jetstream.api.v1.stream_list_response","total":1,"streams":[%s]}`, 257, func(n int) string { return fmt.Sprintf(`{"config":{"name":"S%d"}}`, n) }), infos, 0},
		"a long page of streams":             {`{"type":"io.nats.jetstream.api.v1.stream_list_response","total":1,"streams":[]` + strings.Repeat(" ", 8<<20) + "}", infos, 0},
		"a long page of subjects":            {fmt.Sprintf(info, "") + strings.Repeat(" ", 16<<20), subjects, 0},
		"no info":                            {`{"type":"io.nats.jetstream.api.v1.stream_list_response","total":1,"streams":[null]}`, infos, 0},
		"as many subjects as a server sends": {of(info, 100_000, subject), subjects, 100_000},
		"one subject more":                   {of(info, 100_001, subject), subjects, 0},
	}
	for name, tt := range tests {
		answers.Store(&tt.answer)
		got, err := tt.list()
		if got != tt.want && tt.want > 0 || errors.Is(err, kvstore.ErrWrongAnswer) != (tt.want == 0) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

// A server that sends more messages than were asked for does not fill the memory of its
// client.
func TestBatchesEnd(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	const prefix = kvstore.APIPrefix("lying.API")
	server := srv.Connect(t)
	natstest.Answer(t, server, prefix.DirectGet("S", ""), func(m *nats.Msg) error {
		for n := range 1000 {
			reply := nats.NewMsg(m.Reply)
			for name, value := range map[string]string{nats.JSStream: "S", nats.JSSubject: "s.a", nats.JSSequence: fmt.Sprint(n + 1), nats.JSTimeStamp: "2026-01-02T03:04:05Z"} {
				reply.Header[name] = []string{value}
			}
			if err := server.PublishMsg(reply); err != nil {
				return err
			}
		}

		return nil
	})
	store, err := kvstore.Open(t.Context(), connect.Options{Servers: []string{srv.URL()}, APIPrefix: string(prefix)}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Conn().Close)
	page, err := store.Page(t.Context(), kvstore.Query{Stream: "S", Subject: "s.>", From: 1}, 4)
	if !errors.Is(err, kvstore.ErrWrongAnswer) || len(page.Messages) != 4 {
		t.Errorf("%d messages, %v", len(page.Messages), err)
	}
}

// TestLargeBatchesEnd: a server that sends messages of more bytes than were asked for does
// not fill the memory of its client either.
func TestLargeBatchesEnd(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	const prefix, most = kvstore.APIPrefix("lying.API"), 4 << 20
	server := srv.Connect(t)
	value := make([]byte, 900<<10)
	natstest.Answer(t, server, prefix.DirectGet("S", ""), func(m *nats.Msg) error {
		for n := range 20 {
			reply := nats.NewMsg(m.Reply)
			for name, value := range map[string]string{nats.JSStream: "S", nats.JSSubject: "s.a", nats.JSSequence: fmt.Sprint(n + 1), nats.JSTimeStamp: "2026-01-02T03:04:05Z"} {
				reply.Header[name] = []string{value}
			}
			reply.Data = value
			if err := server.PublishMsg(reply); err != nil {
				return err
			}
		}
		end := nats.NewMsg(m.Reply)
		end.Header["Status"] = []string{"204"}

		return server.PublishMsg(end)
	})
	store, err := kvstore.Open(t.Context(), connect.Options{Servers: []string{srv.URL()}, APIPrefix: string(prefix)}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Conn().Close)
	page, err := store.Page(t.Context(), kvstore.Query{Stream: "S", Subject: "s.>", From: 1}, 256)
	if !errors.Is(err, kvstore.ErrWrongAnswer) || len(page.Messages) != most/len(value)+1 {
		t.Errorf("%d messages, %v", len(page.Messages), err)
	}
}

// TestPagesAreBounded: a page of large messages ends after 4 MiB, whatever their number,
// and the next one goes on behind it.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	const count, size = 10, 900 << 10
	value := bytes.Repeat([]byte("x"), size)
	for i := range count {
		if _, err := store.Put(t.Context(), fmt.Sprintf("group.web.m%d", i), value); err != nil {
			t.Fatal(err)
		}
	}
	a, read := kvstore.Query{Stream: "KV_MUSTER_MANIFESTS", Subject: "$KV.MUSTER_MANIFESTS.>", From: 1}, 0
	for more := true; more; {
		p, err := store.Page(t.Context(), a, 256)
		if err != nil || len(p.Messages) == 0 || (len(p.Messages)-1)*size > 4<<20 {
			t.Fatalf("a page of %d messages of %d bytes, %v", len(p.Messages), size, err)
		}
		read += len(p.Messages)
		a.From, more = p.Next, p.More
	}
	if read != count {
		t.Errorf("%d messages, not %d", read, count)
	}
}

// TestStoredAt: a message is found by its sequence as long as the stream has it; the one behind it is
// none in its place.
func TestStoredAt(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	const stream, subject = "KV_MUSTER_NODES", "$KV.MUSTER_NODES.>"
	var times []time.Time
	for sequence := uint64(1); sequence <= 2; sequence++ {
		if err := store.PutState(t.Context(), model.NodeState{Node: fmt.Sprint("web0", sequence)}, time.Hour); err != nil {
			t.Fatal(err)
		}
		_, last, err := store.StreamAge(t.Context(), stream, subject)
		if err != nil {
			t.Fatal(err)
		}
		at, err := store.Store.StoredAt(t.Context(), stream, subject, last)
		if err != nil || at.IsZero() {
			t.Fatalf("%d: %s, %v", last, at, err)
		}
		times = append(times, at)
	}
	if times[0].Equal(times[1]) {
		t.Error("two messages are one")
	}
	if at, err := store.Store.StoredAt(t.Context(), stream, subject, 99); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("99: %s, %v", at, err)
	}
	if at, err := store.Store.StoredAt(t.Context(), stream, "$KV.MUSTER_NODES.web02", 1); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("of another subject: %s, %v", at, err)
	}
}
