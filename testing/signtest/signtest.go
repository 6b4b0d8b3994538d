// Package signtest makes signing keys and signed values for tests.
package signtest

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/model/signed"
)

// Signer returns a new signer.
func Signer(t testing.TB) *signed.Signer {
	t.Helper()
	seed, err := signed.NewSeed()
	if err != nil {
		t.Fatal(err)
	}
	s, err := signed.NewSigner(seed)
	if err != nil {
		t.Fatal(err)
	}

	return s
}

// Sign returns the envelope of a statement of the fleet muster. Defaults: issued now, valid for an hour.
func Sign(t testing.TB, s signed.Statement, by ...*signed.Signer) []byte {
	t.Helper()
	if s.Fleet == "" {
		s.Fleet = "muster"
	}
	if s.Action == "" {
		s.Action = signed.Assign
	}
	if s.Issued.IsZero() {
		s.Issued = time.Now()
	}
	if s.Expires.IsZero() {
		s.Expires = s.Issued.Add(time.Hour)
	}
	value, err := signed.Sign(t.Context(), s, by...)
	if err != nil {
		t.Fatal(err)
	}

	return value
}
