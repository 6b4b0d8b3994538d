package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestALockFileKeepsItsSize while holders change, also if it was empty or longer before.
func TestALockFileKeepsItsSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.lock")
	f, err := openLock(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	long := strings.Repeat("r", 2*holderSize)
	for _, run := range []string{"a", long, "b"} {
		if err := writeHolder(f, LockHolder{RunID: run}); err != nil {
			t.Fatal(err)
		}
		if got := readHolder(f); got.RunID != run || got.PID != os.Getpid() {
			t.Errorf("the holder is %+v, want run %s", got, run)
		}
		if err := eraseHolder(f); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(path); err != nil || len(content) != holderSize || strings.TrimSpace(string(content)) != "" {
			t.Errorf("nobody holds it: %q, %v", content, err)
		}
		if got := readHolder(f); got != (LockHolder{}) {
			t.Errorf("nobody holds it: %+v", got)
		}
	}
}
