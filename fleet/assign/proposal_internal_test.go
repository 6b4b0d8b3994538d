package assign

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/signtest"
)

// TestTwoSignersAtOnce: a process that waits for the key respects a signature made meanwhile, and signs
// nothing older.
func TestTwoSignersAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.nk")
	if _, err := NewKey(path); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}
	const key = "group.web.motd"
	now := time.Now().UTC()
	s := &Signing{Fleet: "muster", Keys: []*KeyFile{k}, Valid: time.Hour, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
	value := signtest.Sign(t, signed.Statement{Target: key, Content: "x", Issued: now.Add(-time.Minute)}, signtest.Signer(t))
	p, err := s.Propose(t.Context(), model.Entry{Key: key, Value: value, Revision: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := k.lock()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.SignProposal(t.Context(), p)
		ended <- err
	}()
	awaitWaiter(t, path)
	if err := k.writeLast(t.Context(), now, s.target(key)); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-ended; !errors.Is(err, signed.ErrOlder) {
		t.Errorf("it signed an older statement: %v", err)
	}
}

// awaitWaiter waits until a process waits for the lock of a file.
func awaitWaiter(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	inode := fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-poll.C {
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(locks)) {
			if strings.Contains(line, "-> FLOCK") && strings.Contains(line, inode) {
				return
			}
		}
	}
	t.Fatal("nobody waits for the lock")
}
