package lock_test

import (
	"errors"
	"os"
	"testing"

	"github.com/musterfleet/muster/resources/host/lock"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestClaim: one agent has a state directory, beside the runs in it.
func TestClaim(t *testing.T) {
	h := hosttest.New(t)
	release, err := h.Claim("muster agent run")
	if err != nil {
		t.Fatal(err)
	}
	var locked lock.LockedError
	if _, err := h.Claim("another"); !errors.As(err, &locked) || locked.Holder.PID != os.Getpid() || locked.Holder.Command != "muster agent run" {
		t.Errorf("the second one gets %v", err)
	}
	unlock, err := h.Lock(t.Context(), lock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unlock(), release()); err != nil {
		t.Fatal(err)
	}
	if release, err = h.Claim("another"); err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
