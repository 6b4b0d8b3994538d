package kvstore_test

import (
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestDigestIsThatOfWhatRuns: the digest covers the manifest, not the document around it.
func TestDigestIsThatOfWhatRuns(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	bundle := model.DigestOf([]byte("bundle"))
	for name, value := range map[string]string{
		"bare": "text", "manifest": `{"protocol":"io.muster.v1.assignment","manifest":"text"}`, "bundle": `{"protocol":"io.muster.v1.assignment","bundle":"` + bundle + `"}`,
	} {
		if _, err := store.Put(t.Context(), "group.all."+name, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{model.DigestOf([]byte("text")), bundle, model.DigestOf([]byte("text"))} {
		if got := all[i]; got.Digest != want {
			t.Errorf("%s has the digest %s, want %s", got.Key, got.Digest, want)
		}
	}
}
