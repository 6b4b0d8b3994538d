package kvstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

func TestManifestIsAssignedReadAndUnassigned(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	first, err := store.Put(t.Context(), "node.web01.motd", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := store.Put(t.Context(), "node.web01.motd", []byte("two"))
	if err != nil {
		t.Fatal(err)
	}
	if first != 1 || second != 2 {
		t.Errorf("revisions %d and %d", first, second)
	}
	got, err := store.Get(t.Context(), "node.web01.motd")
	if err != nil || string(got.Value) != "two" || got.Revision != second || got.Key != "node.web01.motd" || got.Time.IsZero() {
		t.Errorf("get = %+v, %v, want two at %d", got, err, second)
	}
	// Any client of NATS reads the same.
	plain, err := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS").Get(t.Context(), "node.web01.motd")
	if err != nil || string(plain.Value()) != "two" || plain.Revision() != second {
		t.Errorf("plain get = %v, %v", plain, err)
	}
	last, err := store.Delete(t.Context(), "node.web01.motd", nil)
	if err != nil || last <= second {
		t.Fatalf("delete = %d, %v", last, err)
	}
	if _, err := store.Get(t.Context(), "node.web01.motd"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("get after delete = %v", err)
	}
	if _, err := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS").Get(t.Context(), "node.web01.motd"); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("plain get after delete = %v", err)
	}
	history, err := store.History(t.Context(), "node.web01.motd")
	if err != nil || len(history) != 3 || history[0].Revision != first || string(history[0].Value) != "one" || history[2].Revision != last || history[1].Revision != second || !history[2].Deleted {
		t.Errorf("history = %+v, %v", history, err)
	}
	if listed, err := store.List(t.Context()); err != nil || len(listed) != 0 {
		t.Errorf("list after delete = %+v, %v", listed, err)
	}
}

// TestCurrentIsThatOfTheLeader: what the leader has is asked for without storing anything.
func TestCurrentIsThatOfTheLeader(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	stored := func(want uint64) {
		t.Helper()
		if _, last, err := kvstore.NewAssignments(store.Store).Age(t.Context()); err != nil || last != want {
			t.Errorf("the last sequence is %d, %v, want %d", last, err, want)
		}
	}
	const key, other = "group.web.app", "group.web.other"
	if _, err := store.Current(t.Context(), key); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("of nothing: %v", err)
	}
	stored(0)
	for _, k := range []string{key, key, other} {
		if _, err := store.Put(t.Context(), k, []byte(k)); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := store.Current(t.Context(), key); err != nil || e.Revision != 2 || string(e.Value) != key {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := store.Current(t.Context(), other); err != nil || e.Revision != 3 {
		t.Errorf("%+v, %v", e, err)
	}
	stored(3)
	if _, err := store.Delete(t.Context(), key, nil); err != nil {
		t.Fatal(err)
	}
	if e, err := store.Current(t.Context(), key); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("of a removed one: %+v, %v", e, err)
	}
	stored(4)
	if _, err := store.Current(t.Context(), "group.web.*"); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("of a wildcard: %v", err)
	}
}

func TestHistoryKeepsSixteen(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	for i := range 20 {
		if _, err := store.Put(t.Context(), "group.web.app", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	history, err := store.History(t.Context(), "group.web.app")
	if err != nil || len(history) != 16 || string(history[0].Value) != "4" || string(history[15].Value) != "19" {
		t.Errorf("%d revisions, %v", len(history), err)
	}
	if _, err := store.History(t.Context(), "group.web.none"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("history of nothing = %v", err)
	}
}

func TestTwoOperatorsLoseNothing(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	const operators, each = 4, 25
	var all sync.WaitGroup
	for op := range operators {
		own := kvtest.Bind(t, srv)
		all.Go(func() {
			for i := range each {
				name := fmt.Sprintf("op%d-%d", op, i)
				if _, err := own.Put(t.Context(), "group.web."+name, []byte(name)); err != nil {
					t.Errorf("put %s: %v", name, err)
				}
				if i%5 == 4 {
					if _, err := own.Delete(t.Context(), "group.web."+name, nil); err != nil {
						t.Errorf("delete %s: %v", name, err)
					}
				}
			}
		})
	}
	// Any client of NATS writes between them.
	raw := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
	all.Go(func() {
		for i := range each {
			if _, err := raw.PutString(t.Context(), fmt.Sprintf("group.web.raw-%d", i), "raw"); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	listed, err := store.List(t.Context(), "group.web")
	if err != nil {
		t.Fatal(err)
	}
	if want := operators*each*4/5 + each; len(listed) != want {
		t.Fatalf("%d listed, want %d", len(listed), want)
	}
	for _, l := range listed {
		value, err := store.Get(t.Context(), model.Key(l.Family, l.Name))
		if err != nil || value.Revision != l.Revision || model.DigestOf(value.Value) != l.Digest {
			t.Errorf("%s: listed %d %s, is %d, %v", l.Key, l.Revision, l.Digest, value.Revision, err)
		}
	}
}

// TestListOfWhatIsWritten has each key once, while one of them is written all the time.
func TestListOfWhatIsWritten(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for i := range 20 {
		if _, err := store.Put(t.Context(), fmt.Sprintf("node.web%02d.motd", i), bytes.Repeat([]byte("x"), 1000)); err != nil {
			t.Fatal(err)
		}
	}
	writer := kvtest.Bind(t, srv)
	for range 100 {
		var writing sync.WaitGroup
		writing.Go(func() {
			for range kvstore.HistorySize / 2 { // with more revisions the bucket would drop listed ones
				if _, err := writer.Put(t.Context(), "node.web07.motd", []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
		all, err := store.List(t.Context())
		if err != nil || len(all) != 20 {
			t.Errorf("%d keys, %v", len(all), err)
		}
		writing.Wait()
	}
}

func TestListShowsEveryFamilyAndWhatToolsPut(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for _, family := range []string{"node.web01", "node.web02", "group.all"} {
		if _, err := store.Put(t.Context(), family+".motd", []byte(family)); err != nil {
			t.Fatal(err)
		}
	}
	raw := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
	for _, key := range []string{"node.web01.raw", "node.web01.motd", "other.web01.raw", "node.web01._note", "node.web.01.deep"} {
		if _, err := raw.PutString(t.Context(), key, "by a tool"); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	listed, err := store.List(t.Context())
	for _, l := range listed {
		keys = append(keys, l.Key)
	}
	if got, want := strings.Join(keys, " "), "group.all.motd node.web01.motd node.web01.raw node.web02.motd"; err != nil || got != want {
		t.Errorf("list = %s, %v, want %s", got, err, want)
	}
	if want := model.DigestOf([]byte("by a tool")); listed[1].Digest != want || listed[2].Digest != want {
		t.Errorf("digests %s and %s, want %s", listed[1].Digest, listed[2].Digest, want)
	}
	one, err := store.List(t.Context(), "node.web02")
	if err != nil || len(one) != 1 || one[0].Key != "node.web02.motd" {
		t.Errorf("list of one family = %+v, %v", one, err)
	}
}

func TestInvalidNamesAreRefused(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	for _, tt := range []struct{ family, name string }{
		{"node.web.01", "motd"}, {"node.", "motd"}, {"web01", "motd"}, {"team.web", "motd"}, {"node.*", "motd"}, {"node.>", "motd"},
		{"node.web01", ""}, {"node.web01", "a.b"}, {"node.web01", "_index"}, {"node.web01", "*"}, {"node.web01", "a b"},
	} {
		if _, err := store.Put(t.Context(), model.Key(tt.family, tt.name), nil); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("put %q %q = %v", tt.family, tt.name, err)
		}
		if _, err := store.Delete(t.Context(), model.Key(tt.family, tt.name), nil); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("delete %q %q = %v", tt.family, tt.name, err)
		}
	}
	if _, err := store.List(t.Context(), "node.*"); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("list = %v", err)
	}
}

func TestValueOverTheServersLimit(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	big := bytes.Repeat([]byte("x"), int(srv.Connect(t).MaxPayload())+1)
	_, err := store.Put(t.Context(), "node.web01.big", big)
	if !errors.Is(err, model.ErrTooLarge) || !strings.Contains(err.Error(), "1048577 bytes") || !strings.Contains(err.Error(), "bundle") {
		t.Errorf("put = %v", err)
	}
	// The largest that is accepted is stored.
	fits := big[:len(big)-1025]
	if _, err := store.Put(t.Context(), "node.web01.big", fits); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get(t.Context(), "node.web01.big"); err != nil || !bytes.Equal(got.Value, fits) {
		t.Errorf("get = %d bytes, %v", len(got.Value), err)
	}
	digest, err := store.PutBundle(t.Context(), bytes.NewReader(big))
	if err != nil || digest != model.DigestOf(big) {
		t.Fatalf("bundle = %s, %v", digest, err)
	}
	if again, err := store.PutBundle(t.Context(), bytes.NewReader(big)); err != nil || again != digest {
		t.Errorf("bundle again = %s, %v", again, err)
	}
	r, err := store.GetBundle(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, big) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// An assignment that cannot be used is listed, its history has the reason, and it can
// be removed.
func TestAssignmentWithHeadersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]string{"Status": "NATS/1.0\r\nStatus: 503\r\nKV-Operation: DEL\r\n\r\n", "cannot be read": "NATS/1.0\r\nfoo\r\n\r\n"} {
		srv, store := kvtest.New(t)
		srv.Raw(t, "$KV.MUSTER_MANIFESTS.group.web.app", block, "")
		if all, err := store.List(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
		if _, err := store.Get(t.Context(), "group.web.app"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: get: %v", name, err)
		}
		if all, err := store.History(t.Context(), "group.web.app"); err != nil || len(all) != 1 || !strings.Contains(all[0].Refused, name) {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
		if _, err := store.Delete(t.Context(), "group.web.app", nil); err != nil {
			t.Error(err)
		}
		if all, err := store.List(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
}

// TestReplaceOnlyWhatWasSeen: a value that another operator stores in between stays.
func TestReplaceOnlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	const key = "group.web.motd"
	revision, err := store.Put(t.Context(), key, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	seen := model.Entry{Key: key, Revision: revision}
	if _, err := store.Put(t.Context(), key, []byte("two")); err != nil {
		t.Fatal(err)
	}
	for _, removal := range []bool{false, true} {
		if _, err := store.Replace(t.Context(), seen, []byte("signed"), removal); !errors.Is(err, kvstore.ErrAssignmentChanged) || !strings.Contains(err.Error(), "replace revision 1 of group.web.motd: another user has changed it") {
			t.Errorf("removal %v: %v", removal, err)
		}
	}
	now, err := store.Get(t.Context(), key)
	if err != nil || string(now.Value) != "two" {
		t.Fatalf("%s, %v", now.Value, err)
	}
	if _, err := store.Replace(t.Context(), now, []byte("three"), false); err != nil {
		t.Fatal(err)
	}
	if now, err = store.Get(t.Context(), key); err != nil || string(now.Value) != "three" {
		t.Fatalf("%s, %v", now.Value, err)
	}
	if _, err := store.Replace(t.Context(), now, []byte("proof"), true); err != nil {
		t.Fatal(err)
	}
	all, err := store.History(t.Context(), key)
	if last := all[len(all)-1]; err != nil || !last.Deleted || string(last.Value) != "proof" {
		t.Errorf("%+v, %v", last, err)
	}
}

// TestChanges wakes for stored values and for each change.
func TestChanges(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer stop()
	put := func(do func(context.Context, string, []byte) (uint64, error)) {
		t.Helper()
		if _, err := do(t.Context(), "group.web.motd", []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	put(store.Put)
	woken := 0
	for err := range store.Changes(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		switch woken++; woken {
		case 1:
			put(store.Put)
		case 2:
			put(store.Delete)
		}
		if woken == 3 {
			return
		}
	}
}
