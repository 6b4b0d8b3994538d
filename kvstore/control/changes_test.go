package control_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/control"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestChanges: the newest revisions, the newest first, each with who wrote it.
func TestChanges(t *testing.T) {
	t.Parallel()
	_, s := kvtest.New(t)
	b := control.New(s.Store)
	if all, err := b.Changes(t.Context(), 10); err != nil || len(all) != 0 {
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
	all, err := b.Changes(t.Context(), 10)
	for _, c := range all {
		got = append(got, fmt.Sprintf("%s %d %v %s %q", c.Key, c.Revision, c.Deleted, c.Value, c.By))
	}
	want := `node.web01.pause 3 true  "bob"|group.web.pause 2 false two "anna (dashboard)\r\nKV-Operation: DEL ü"|node.web01.pause 1 false one ""`
	if err != nil || strings.Join(got, "|") != want {
		t.Errorf("%s, %v", strings.Join(got, "|"), err)
	}
	if all, err := b.Changes(t.Context(), 2); err != nil || len(all) != 2 || all[1].Key != "group.web.pause" {
		t.Errorf("the last two: %+v, %v", all, err)
	}
}

// TestChangesThatAreForged: what claims to come from elsewhere is shown, and its value is not used; a long
// name is none.
func TestChangesThatAreForged(t *testing.T) {
	t.Parallel()
	_, s := kvtest.New(t)
	subject := kvstore.KVSubject(s.Names().Control(), "node.web01.pause")
	for _, header := range []nats.Header{{"Nats-Sequence": {"7"}}, {"Muster-By": {strings.Repeat("x", 300)}}, {"Muster-By": {"%zz"}}} {
		if _, err := s.JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: subject, Header: header, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := control.New(s.Store).Changes(t.Context(), 10)
	if err != nil || len(all) != 3 || all[0].By != "" || all[1].By != "" || all[2].Refused == "" || all[2].Value != nil || all[2].Revision != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}
