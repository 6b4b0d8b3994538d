package kvstore_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// The reader stops at the size in the metadata, because a caller may write the bytes to
// disk.
func TestObjectsEndWhereTheySay(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, size uint64, chunks uint32, parts ...string) {
		t.Helper()
		info, err := json.Marshal(jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: name}, NUID: name, Size: size, Chunks: chunks, Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(make([]byte, 32))})
		if err == nil {
			_, err = js.Publish(t.Context(), "$O.MUSTER_BUNDLES.M."+base64.URLEncoding.EncodeToString([]byte(name)), info)
		}
		for _, part := range parts {
			if err == nil {
				_, err = js.Publish(t.Context(), "$O.MUSTER_BUNDLES.C."+name, []byte(part))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	large := strings.Repeat("x", 100_000)
	put("bytes", 10, 40, strings.Split(strings.Repeat(large+" ", 40), " ")[:40]...)
	put("chunks", 1_000, 2, "a", "b", "c", "d")
	put("empty", 0, 0, "a")
	for name, want := range map[string]struct {
		most int
		text string
	}{
		"bytes":  {10, "more than the 10 bytes"},
		"chunks": {2, "more than the 2 chunks"},
		"empty":  {0, "damaged"},
	} {
		r, err := store.Object(t.Context(), "MUSTER_BUNDLES", name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if len(got) > want.most || !errors.Is(err, kvstore.ErrDamaged) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		_ = r.Close()
	}
	digest := model.DigestOf([]byte("huge"))
	put(digest, model.MaxBundle+1, 10_000, large)
	if _, err := store.GetBundle(t.Context(), digest); err == nil || !strings.Contains(err.Error(), fmt.Sprint("at most ", model.MaxBundle)) {
		t.Errorf("a bundle that is too large: %v", err)
	}
}
