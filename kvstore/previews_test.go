package kvstore_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestPreviewBundles checks that a preview bundle exists until it is removed and cannot be assigned.
// An assigned bundle stays and serves previews without a bundle.
func TestPreviewBundles(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	data := []byte("a bundle")
	digest := model.DigestOf(data)
	if err := store.PutPreviewBundle(t.Context(), "p1", digest, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.GetBundle(t.Context(), digest); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("as an assigned one = %v", err)
	}
	read := func(id string) {
		t.Helper()
		r, err := store.GetPreviewBundle(t.Context(), id, digest)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("read %q, %v", got, err)
		}
		_ = r.Close()
	}
	read("p1")
	if err := store.RemovePreviewBundle(t.Context(), "p1", digest); err != nil {
		t.Fatal(err)
	}
	if _, err := store.GetPreviewBundle(t.Context(), "p1", digest); !errors.Is(err, model.ErrNotFound) || !strings.Contains(err.Error(), "its preview has ended") {
		t.Errorf("after its removal = %v", err)
	}
	if _, err := store.PutBundle(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if err := store.PutPreviewBundle(t.Context(), "p2", digest, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	read("p2")
	if err := store.RemovePreviewBundle(t.Context(), "p2", digest); err != nil {
		t.Fatal(err)
	}
	read("p3")
}
