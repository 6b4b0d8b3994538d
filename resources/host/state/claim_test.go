package state_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestClaim: one agent has a state directory, beside the runs in it.
func TestClaim(t *testing.T) {
	h := hosttest.New(t)
	claim, err := h.Claim("muster agent run")
	if err != nil {
		t.Fatal(err)
	}
	var locked state.LockedError
	if _, err := h.Claim("another"); !errors.As(err, &locked) || locked.Holder.PID != os.Getpid() || locked.Holder.Command != "muster agent run" {
		t.Errorf("the second one gets %v", err)
	}
	unlock, err := h.Lock(t.Context(), state.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unlock(), claim.Release()); err != nil {
		t.Fatal(err)
	}
	if claim, err = h.Claim("another"); err != nil {
		t.Fatal(err)
	}
	if err := claim.Release(); err != nil {
		t.Error(err)
	}
}

// TestClaimAfterAKill: a process that the killed agent was starting has its lock for a
// moment.
func TestClaimAfterAKill(t *testing.T) {
	h := hosttest.New(t)
	claim, err := h.Claim("muster agent run")
	if err != nil {
		t.Fatal(err)
	}
	if err := claim.Release(); err != nil {
		t.Fatal(err)
	}
	const dead = 1 << 30 // more than any id of a process
	path := filepath.Join(h.StateDir(), "agent.lock")
	if err := os.WriteFile(path, fmt.Appendf(nil, `{"pid": %d, "command": "muster agent run"}`, dead), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = f.Close() })
	claim, err = h.Claim("muster agent run")
	if err != nil {
		t.Fatal(err)
	}
	if err := claim.Release(); err != nil {
		t.Error(err)
	}
}

// TestClaimThatIsLost if the directory or its lock is replaced, but not while it is missing.
func TestClaimThatIsLost(t *testing.T) {
	h := hosttest.New(t)
	claim, err := h.Claim("muster agent run")
	if err != nil {
		t.Fatal(err)
	}
	dir := h.StateDir()
	step := func(what string, lost bool, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if got := claim.IsLost(); got != lost {
			t.Errorf("%s: lost %t", what, got)
		}
	}
	step("claimed", false, nil)
	step("renamed", false, os.Rename(dir, dir+".away"))
	step("another one", true, os.Mkdir(dir, 0o700))
	step("another lock", true, os.WriteFile(filepath.Join(dir, "agent.lock"), nil, 0o600))
	step("removed", false, os.RemoveAll(dir))
	step("back", false, os.Rename(dir+".away", dir))
	step("its lock removed", true, os.Remove(filepath.Join(dir, "agent.lock")))
	again, err := h.Claim("muster agent run")
	if err != nil {
		t.Fatal(err)
	}
	step("claimed again", true, nil)
	if again.IsLost() {
		t.Error("the new claim is lost")
	}
	if err := errors.Join(claim.Release(), again.Release()); err != nil {
		t.Error(err)
	}
}
