package kvstore_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

func TestObjects(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	bundles, err := js.ObjectStore(t.Context(), "MUSTER_BUNDLES")
	if err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("0123456789"), 500_000)
	for name, data := range map[string][]byte{"long": long, "empty": nil, "short": []byte("s")} {
		if _, err := bundles.PutBytes(t.Context(), name, data); err != nil {
			t.Fatal(err)
		}
		r, err := store.Object(t.Context(), "MUSTER_BUNDLES", name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	// Close before the end stops the fetch.
	r, err := store.Object(t.Context(), "MUSTER_BUNDLES", "long")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	// GetBundle rejects other bytes stored under the digest.
	wrong := model.DigestOf([]byte("right"))
	if _, err := bundles.PutBytes(t.Context(), wrong, []byte("wrong")); err != nil {
		t.Fatal(err)
	}
	r, err = store.GetBundle(t.Context(), wrong)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, kvstore.ErrDamaged) {
		t.Errorf("read of a forged bundle = %v", err)
	}
	_ = r.Close()
	if err := bundles.Delete(t.Context(), "short"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"short", "never"} {
		if _, err := store.Object(t.Context(), "MUSTER_BUNDLES", name); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("object %s = %v", name, err)
		}
	}
	for _, digest := range []string{"short", "sha256-12", "sha256-" + strings.Repeat("z", 64)} {
		if _, err := store.GetBundle(t.Context(), digest); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("bundle %s = %v", digest, err)
		}
	}
	if _, err := store.GetBundle(t.Context(), model.DigestOf(nil)); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("unknown bundle = %v", err)
	}
}

func TestData(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	data := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_DATA")
	if _, err := data.Put(t.Context(), "sites/berlin.web", []byte("a: 1")); err != nil {
		t.Fatal(err)
	}
	if got, err := store.KVGet(t.Context(), "MUSTER_DATA", "sites/berlin.web"); err != nil || string(got) != "a: 1" {
		t.Errorf("kv get = %s, %v", got, err)
	}
	if err := data.Delete(t.Context(), "sites/berlin.web"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"sites/berlin.web", "never"} {
		if _, err := store.KVGet(t.Context(), "MUSTER_DATA", key); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("get %s = %v", key, err)
		}
	}
	for _, key := range []string{"", ".", "a..b", "a.*", ">", "a b"} {
		if _, err := store.KVGet(t.Context(), "MUSTER_DATA", key); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("get %q = %v", key, err)
		}
	}
	if _, err := store.KVGet(t.Context(), "NO_SUCH", "key"); err == nil || !strings.Contains(err.Error(), "no such key-value bucket") {
		t.Errorf("unknown bucket = %v", err)
	}
	if _, err := store.KVGet(t.Context(), "A.B", "key"); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("invalid bucket = %v", err)
	}
}
