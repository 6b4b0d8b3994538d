package files_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
)

// TestLeasedFile has the owner of a file keep others from opening it: it differs from
// whatever it should be, and cannot be copied.
func TestLeasedFile(t *testing.T) {
	h, path := hosttest.New(t).Disk, t.TempDir()+"/leased"
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	entry, err := h.Look(path)
	if err != nil {
		t.Fatal(err)
	}
	if digest, _, err := h.Compare(t.Context(), entry); digest != "" || err != nil {
		t.Errorf("compared: %q, %v", digest, err)
	}
	if digest, err := h.DigestEntry(t.Context(), entry); digest != "" || !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("its digest: %q, %v", digest, err)
	}
}
