package content_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestPreviewBundles: the bundle of a preview is there until it is removed, and is none that
// can be assigned; one that is assigned stays.
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
	if _, err := store.PutBundle(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	r, err := store.GetPreviewBundle(t.Context(), "p1", digest)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %q, %v", got, err)
	}
	if err := errors.Join(r.Close(), store.RemovePreviewBundle(t.Context(), "p1", digest)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.GetPreviewBundle(t.Context(), "p1", digest); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("after its removal = %v", err)
	}
	if r, err = store.GetBundle(t.Context(), digest); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
}
