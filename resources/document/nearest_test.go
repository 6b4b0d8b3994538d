package document_test

import (
	"testing"

	"github.com/musterfleet/muster/resources/document"
)

// TestNearestGoesOn checks a word that is similar to no known word and the beginning of one.
func TestNearestGoesOn(t *testing.T) {
	t.Parallel()
	known := []string{"user", "password_file", "sign-key", "trust_keys", "trust_policy", "password_file"}
	for word, want := range map[string]string{"password": "password_file", "sign": "sign-key", "trust": "", "passw": "", "usr": "user", "": ""} {
		if got := document.Nearest(word, known); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
