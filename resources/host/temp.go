package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// tempRoot is where temporary directories are, in the state directory.
const tempRoot = "tmp"

// TempDir makes a directory of this process in the state directory, that nobody
// else may enter. The caller removes it; what a killed process leaves is
// removed by BeginRun of a later one. The prefix is part of its name. Without
// a state directory it is ErrNoStateDir.
func (h *Host) TempDir(prefix string) (string, error) {
	if h.opts.StateDir == "" {
		return "", ErrNoStateDir
	}
	root := filepath.Join(h.opts.StateDir, tempRoot)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("could not make temporary directory: %w", err)
	}

	return os.MkdirTemp(root, fmt.Sprintf("%d-%s-", os.Getpid(), prefix))
}

// cleanTemp removes the temporary directories of processes that are gone.
func (h *Host) cleanTemp(ctx context.Context) {
	root := filepath.Join(h.opts.StateDir, tempRoot)
	entries, err := os.ReadDir(root)
	if err != nil && !isAbsent(err) {
		h.log.WarnContext(ctx, "could not look for what a killed run left behind", "directory", root, "error", err)
	}
	for _, entry := range entries {
		text, _, _ := strings.Cut(entry.Name(), "-")
		pid, err := strconv.Atoi(text)
		if err != nil || unix.Kill(pid, 0) != unix.ESRCH {
			continue
		}
		path := filepath.Join(root, entry.Name())
		if err := os.RemoveAll(path); err != nil {
			h.log.WarnContext(ctx, "could not remove what a killed run left behind", "directory", path, "error", err)
		}
	}
}
