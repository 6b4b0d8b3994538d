package state

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// tempRoot contains the temporary directories, in the state directory.
const tempRoot = "tmp"

// TempDir creates a private directory for this process in the state directory, with prefix in its name. The
// caller removes it. BeginRun removes the directories of killed processes. Without a state directory it
// returns ErrNone.
func (d *Dir) TempDir(prefix string) (string, error) {
	if d.path == "" {
		return "", ErrNone
	}
	if err := d.OpenState(true); err != nil {
		return "", err
	}
	root := filepath.Join(d.path, tempRoot)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("could not make temporary directory: %w", err)
	}

	return os.MkdirTemp(root, fmt.Sprintf("%d-%s-", os.Getpid(), prefix))
}

// CleanTemp removes the temporary directories of dead processes, and those of an earlier
// one of the same id, as in a container: it comes before the first TempDir. It also
// removes temporary files from own, directories in the state directory that only this
// process writes to; no run records those.
func (d *Dir) CleanTemp(ctx context.Context, own ...string) {
	if d.path == "" {
		return
	}
	cleanTemp(ctx, d.path, d.log, func(pid int) bool { return pid == os.Getpid() || isDead(pid) })
	for _, name := range own {
		dir := filepath.Join(d.path, name)
		if _, err := cleanDir(dir); err != nil {
			d.log.WarnContext(ctx, "could not remove litter of a killed process", "directory", dir, "error", err)
		}
	}
}

func isDead(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }

// cleanTemp removes the temporary directories of processes that have ended.
func cleanTemp(ctx context.Context, stateDir string, log *slog.Logger, ended func(pid int) bool) {
	root := filepath.Join(stateDir, tempRoot)
	entries, err := os.ReadDir(root)
	if err != nil && !paths.IsAbsent(err) {
		log.WarnContext(ctx, "could not search litter of killed runs", "directory", root, "error", err)
	}
	for _, entry := range entries {
		text, _, _ := strings.Cut(entry.Name(), "-")
		pid, err := strconv.Atoi(text)
		if err != nil || !entry.IsDir() || !ended(pid) {
			continue
		}
		path := filepath.Join(root, entry.Name())
		if err := paths.RemoveTree(ctx, path); err != nil {
			log.WarnContext(ctx, "could not remove litter of a killed run", "directory", path, "error", err)
		}
	}
}
