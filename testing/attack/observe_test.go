package attack

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/testing/kvtest"
)

// streamInfo is what a snapshot takes from the server's list of streams.
type streamInfo struct {
	Config  json.RawMessage `json:"config"`
	Created time.Time       `json:"created"`
	State   struct {
		Messages  uint64 `json:"messages"`
		Bytes     uint64 `json:"bytes"`
		First     uint64 `json:"first_seq"`
		Last      uint64 `json:"last_seq"`
		Deleted   uint64 `json:"num_deleted"`
		Consumers int    `json:"consumer_count"`
	} `json:"state"`
}

// held is one stream: its description, its messages by sequence, its consumers.
type held struct {
	info      streamInfo
	messages  map[uint64]string
	consumers map[string]string
}

// snapshot is all that JetStream holds for the account of operators, by stream.
type snapshot map[string]held

// ask asks the JetStream API as the administrator.
func ask(t testing.TB, nc *nats.Conn, verb string, body, into any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	// A stream of a cluster may have no leader for a moment.
	kvtest.Eventually(t, verb, func() (bool, string) {
		reply, err := nc.Request("$JS.API."+verb, data, kvtest.Deadline)
		if err == nil {
			err = json.Unmarshal(reply.Data, into)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// take returns a snapshot; what did not change since the last one is not read again.
func take(t testing.TB, nc *nats.Conn, last snapshot) snapshot {
	t.Helper()
	var list struct {
		Streams []streamInfo `json:"streams"`
	}
	ask(t, nc, "STREAM.LIST", map[string]any{}, &list)
	s := snapshot{}
	for _, info := range list.Streams {
		var config struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(info.Config, &config); err != nil {
			t.Fatal(err)
		}
		h := held{info: info, consumers: consumers(t, nc, config.Name, info.State.Consumers)}
		if before, known := last[config.Name]; known && before.info.State == info.State && before.info.Created.Equal(info.Created) {
			h.messages = before.messages
		} else {
			h.messages = messages(t, nc, config.Name)
		}
		s[config.Name] = h
	}

	return s
}

func messages(t testing.TB, nc *nats.Conn, stream string) map[uint64]string {
	t.Helper()
	out := map[uint64]string{}
	for next := uint64(1); ; {
		var got struct {
			Error *struct {
				Code int    `json:"err_code"`
				Text string `json:"description"`
			} `json:"error"`
			Message *struct {
				Subject string `json:"subject"`
				Seq     uint64 `json:"seq"`
				Headers []byte `json:"hdrs"`
				Data    []byte `json:"data"`
			} `json:"message"`
		}
		ask(t, nc, "STREAM.MSG.GET."+stream, map[string]any{"seq": next, "next_by_subj": ">"}, &got)
		const notFound = 10037
		switch {
		case got.Error != nil && got.Error.Code == notFound:
			return out
		case got.Message == nil:
			t.Fatalf("message %d of %s: %+v", next, stream, got.Error)
		}
		m := got.Message
		out[m.Seq] = fmt.Sprintf("%s %x", m.Subject, sha256.Sum256(slices.Concat(m.Headers, []byte{0}, m.Data)))
		next = m.Seq + 1
	}
}

func consumers(t testing.TB, nc *nats.Conn, stream string, count int) map[string]string {
	t.Helper()
	out := map[string]string{}
	if count == 0 {
		return out
	}
	var list struct {
		Consumers []struct {
			Name      string          `json:"name"`
			Config    json.RawMessage `json:"config"`
			Delivered json.RawMessage `json:"delivered"`
			Floor     json.RawMessage `json:"ack_floor"`
			Pending   int             `json:"num_ack_pending"`
		} `json:"consumers"`
	}
	ask(t, nc, "CONSUMER.LIST."+stream, map[string]any{}, &list)
	for _, c := range list.Consumers {
		out[c.Name] = fmt.Sprintf("%s delivered %s, acknowledged %s, %d pending", c.Config, c.Delivered, c.Floor, c.Pending)
	}

	return out
}

// changes returns what differs from an earlier snapshot, but for messages on the
// subjects that may change.
func (s snapshot) changes(before snapshot, may func(subject string) bool) []string {
	var out []string
	for name, old := range before {
		if _, there := s[name]; !there {
			out = append(out, fmt.Sprintf("stream %s with %d messages is gone", name, len(old.messages)))
		}
	}
	for name, now := range s {
		old, known := before[name]
		if !known {
			out = append(out, "stream "+name+" is new")
			continue
		}
		if string(now.info.Config) != string(old.info.Config) || !now.info.Created.Equal(old.info.Created) {
			out = append(out, fmt.Sprintf("stream %s has another configuration: %s, was %s", name, now.info.Config, old.info.Config))
		}
		if !maps.Equal(now.consumers, old.consumers) {
			out = append(out, fmt.Sprintf("consumers of %s are %v, were %v", name, now.consumers, old.consumers))
		}
		out = append(out, compare(name, "stored", now.messages, old.messages, may)...)
		out = append(out, compare(name, "removed", old.messages, now.messages, may)...)
	}
	slices.Sort(out)

	return out
}

// spoiled reports whether something is gone that the fleet was populated with.
func (f *fleet) spoiled() bool {
	for name, old := range f.planted {
		now := f.last[name]
		if string(now.info.Config) != string(old.info.Config) || !maps.Equal(now.consumers, old.consumers) ||
			len(compare(name, "removed", old.messages, now.messages, f.allowed(attacking))) > 0 {
			return true
		}
	}

	return false
}

func compare(stream, what string, these, those map[uint64]string, may func(string) bool) []string {
	var out []string
	for seq, m := range these {
		subject, _, _ := strings.Cut(m, " ")
		if those[seq] != m && !may(subject) {
			out = append(out, fmt.Sprintf("%s %s: message %d on %s", what, stream, seq, subject))
		}
	}

	return out
}

// ear hears all that is published in one account.
type ear struct {
	account string
	// bell publishes in the same account, by the server of the attacker.
	bell *nats.Conn

	mu    sync.Mutex
	heard []*nats.Msg
	rung  chan string
}

// listen turns a connection into an ear. Its user may subscribe to everything.
func listen(t testing.TB, account string, nc, bell *nats.Conn) *ear {
	t.Helper()
	e := &ear{account: account, bell: bell, rung: make(chan string, 16)}
	_, err := nc.Subscribe(">", func(m *nats.Msg) {
		if m.Subject == "bell" {
			e.rung <- string(m.Data)
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard = append(e.heard, m)
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	e.ring(t)

	return e
}

// ring waits until all was heard that was published before.
func (e *ear) ring(t testing.TB) {
	t.Helper()
	token := nats.NewInbox()
	kvtest.Eventually(t, "bell in "+e.account, func() (bool, string) {
		if err := e.bell.Publish("bell", []byte(token)); err != nil {
			return false, err.Error()
		}
		select {
		case got := <-e.rung:
			return got == token, got
		case <-time.After(time.Second):
			return false, "not heard"
		}
	})
}

// fresh returns the messages heard and clears them.
func (e *ear) fresh(t testing.TB) []*nats.Msg {
	t.Helper()
	e.ring(t)
	e.mu.Lock()
	defer e.mu.Unlock()
	heard := e.heard
	e.heard = nil

	return heard
}

// reached reports whether something was heard on a subject since the last time.
func (f *fleet) reached(t testing.TB, subject string) bool {
	t.Helper()
	for _, e := range f.ears {
		e.ring(t)
		e.mu.Lock()
		heard := slices.ContainsFunc(e.heard, func(m *nats.Msg) bool { return m.Subject == subject })
		e.mu.Unlock()
		if heard {
			return true
		}
	}

	return false
}

// breaches returns the breaches since the last call.
func (e *ear) breaches(t testing.TB, breach func(subject string) bool) []string {
	t.Helper()
	var out []string
	for _, m := range e.fresh(t) {
		if breach(m.Subject) {
			out = append(out, fmt.Sprintf("heard in %s on %s: %.60q %v", e.account, m.Subject, m.Data, m.Header))
		}
	}

	return out
}

// matchesAny reports whether one of the patterns covers a subject.
func matchesAny(subject string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return server.SubjectMatchesFilter(subject, p) })
}
