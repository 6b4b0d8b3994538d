package kvstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestChanges reads the newest revisions, newest first, each with its author.
func TestControlChanges(t *testing.T) {
	t.Parallel()
	_, s := kvtest.New(t)
	b := kvstore.NewControl(s.Store)
	if all, more, err := b.Changes(t.Context(), 10); err != nil || more || len(all) != 0 {
		t.Errorf("of an empty bucket: %v, %v", all, err)
	}
	if _, err := b.Put(t.Context(), "node.web01.pause", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.By("anna (dashboard)\r\nKV-Operation: DEL ü").Put(t.Context(), "group.web.pause", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.By("bob").Delete(t.Context(), "node.web01.pause", nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	all, more, err := b.Changes(t.Context(), 10)
	for _, c := range all {
		got = append(got, fmt.Sprintf("%s %d %v %s %q", c.Key, c.Revision, c.Deleted, c.Value, c.By))
	}
	want := `node.web01.pause 3 true  "bob"|group.web.pause 2 false two "anna (dashboard)\r\nKV-Operation: DEL ü"|node.web01.pause 1 false one ""`
	if err != nil || more || strings.Join(got, "|") != want {
		t.Errorf("%s, %v", strings.Join(got, "|"), err)
	}
	if all, more, err := b.Changes(t.Context(), 2); err != nil || !more || len(all) != 2 || all[1].Key != "group.web.pause" {
		t.Errorf("the last two: %+v, %v", all, err)
	}
}

// TestChangesThatAreForged lists a message with forged server headers without its value, and ignores an
// author name that is too long.
func TestChangesThatAreForged(t *testing.T) {
	t.Parallel()
	_, s := kvtest.New(t)
	subject := kvstore.KVSubject(s.Names.Control, "node.web01.pause")
	for _, header := range []nats.Header{{"Nats-Sequence": {"7"}}, {"Muster-By": {strings.Repeat("x", 300)}}, {"Muster-By": {"%zz"}}} {
		if _, err := s.JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: subject, Header: header, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	all, more, err := kvstore.NewControl(s.Store).Changes(t.Context(), 10)
	if err != nil || more || len(all) != 3 || all[0].By != "" || all[1].By != "" || all[2].Refused == "" || all[2].Value != nil || all[2].Revision != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// flood stores many revisions, without waiting for each.
func flood(t *testing.T, s *kvtest.Store, count int, key func(int) string) {
	t.Helper()
	for i := range count {
		if _, err := s.JetStream().PublishMsgAsync(&nats.Msg{Subject: kvstore.KVSubject(s.Names.Control, key(i)), Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if i%500 == 0 || i == count-1 {
			<-s.JetStream().PublishAsyncComplete()
		}
	}
}

// TestChangesBehindAFlood checks that many revisions of one key, or many keys of one group, do not hide
// other changes.
func TestChangesBehindAFlood(t *testing.T) {
	t.Parallel()
	_, s := kvtest.New(t)
	b := kvstore.NewControl(s.Store)
	if _, err := b.By("anna").Put(t.Context(), "node.web01.labels", []byte("one")); err != nil {
		t.Fatal(err)
	}
	const most = 20
	has := func(what string, count int, wantMore bool) {
		t.Helper()
		all, more, err := b.Changes(t.Context(), most)
		if err != nil || len(all) != count || more != wantMore || all[len(all)-1].By != "anna" {
			t.Errorf("%s: %d changes, more %v, %v", what, len(all), more, err)
		}
		for i := 1; i < len(all); i++ {
			if all[i].Revision >= all[i-1].Revision {
				t.Errorf("%s: %d after %d", what, all[i].Revision, all[i-1].Revision)
			}
		}
	}
	flood(t, s, 600, func(int) string { return "group.web.pause" })
	has("one key", 17, false)
	flood(t, s, 100, func(i int) string { return fmt.Sprintf("group.web.k%d", i) })
	has("keys of one group", most, true)
	// The search is limited.
	flood(t, s, 20*most, func(i int) string { return fmt.Sprintf("group.g%d.pause", i) })
	all, more, err := b.Changes(t.Context(), most)
	if err != nil || len(all) != most || !more || all[0].Key != fmt.Sprintf("group.g%d.pause", 20*most-1) {
		t.Errorf("%d changes, more %v, %v", len(all), more, err)
	}
}

// TestChangesLookAtFew checks that a busy key followed by many keys of one group makes Changes read only some of
// these keys.
func TestChangesLookAtFew(t *testing.T) {
	t.Parallel()
	_, s := kvtest.New(t)
	b := kvstore.NewControl(s.Store)
	const most = 20
	flood(t, s, 8000, func(i int) string { return fmt.Sprintf("group.web.k%d", i) })
	if _, err := b.By("anna").Put(t.Context(), "node.web01.labels", []byte("one")); err != nil {
		t.Fatal(err)
	}
	flood(t, s, 7000, func(int) string { return "group.web.pause" })
	before := s.Conn.Stats().InMsgs
	all, more, err := b.Changes(t.Context(), most)
	read := s.Conn.Stats().InMsgs - before
	if err != nil || len(all) != most || !more || all[0].Key != "group.web.pause" || !slices.ContainsFunc(all, func(e model.Entry) bool { return e.By == "anna" }) {
		t.Errorf("%d changes, more %v, %v", len(all), more, err)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Revision >= all[i-1].Revision {
			t.Errorf("%d after %d", all[i].Revision, all[i-1].Revision)
		}
	}
	if read > 4000 {
		t.Errorf("%d messages are read", read)
	}
}
