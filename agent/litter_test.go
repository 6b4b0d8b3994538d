package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestTemporaryFilesOfAKilledAgent are removed at the next start, in directories that only agents write.
// Files of runs stay for the next run, because one may be in progress.
func TestTemporaryFilesOfAKilledAgent(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		const name = ".muster-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		for _, dir := range []string{".", "assignments", "requests", "owed"} {
			dir = filepath.Join(n.state, dir)
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		n.start()
		for dir, stays := range map[string]bool{".": false, "assignments": false, "requests": false, "owed": true} {
			if _, err := os.Lstat(filepath.Join(n.state, dir, name)); stays != (err == nil) {
				t.Errorf("%s: %v", dir, err)
			}
		}
	})
}
