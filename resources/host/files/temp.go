package files

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tempRoot holds the temporary directories, in the state directory.
const tempRoot = "tmp"

// TempDir makes a private directory for this process in the state directory,
// with prefix in its name. The caller removes it; BeginRun removes those of
// killed processes. Without a state directory it is ErrNoStateDir.
func (d *Disk) TempDir(prefix string) (string, error) {
	if d.stateDir == "" {
		return "", ErrNoStateDir
	}
	if err := d.OpenState(true); err != nil {
		return "", err
	}
	root := filepath.Join(d.stateDir, tempRoot)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("could not make temporary directory: %w", err)
	}

	return os.MkdirTemp(root, fmt.Sprintf("%d-%s-", os.Getpid(), prefix))
}

// sharedMemory is a file system in memory.
const sharedMemory = "/dev/shm"

// MemoryDir makes a directory like TempDir, in memory: nothing reaches a disk.
// It first removes those of killed processes. An error means that there is no
// such file system; use TempDir then.
func (d *Disk) MemoryDir(ctx context.Context, prefix string) (string, error) {
	var fs unix.Statfs_t
	if err := Retry(func() error { return unix.Statfs(sharedMemory, &fs) }); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return "", errors.Join(fmt.Errorf("%s is not a file system in memory", sharedMemory), err)
	}
	own, err := inMemory()
	if err != nil {
		return "", err
	}
	cleanGone(ctx, sharedMemory, own, d.log)

	return os.MkdirTemp(sharedMemory, fmt.Sprintf("%s%d-%s-", own, os.Getpid(), prefix))
}

// inMemory returns the prefix of muster's directories in memory. It names the
// pid namespace: processes of another one may share the memory.
func inMemory() (string, error) {
	namespace, err := os.Readlink("/proc/self/ns/pid")

	return "muster-" + strings.Trim(namespace, "pid:[]") + "-", err
}

// cleanTemp removes the temporary directories of dead processes.
func cleanTemp(ctx context.Context, stateDir string, log *slog.Logger) {
	cleanGone(ctx, filepath.Join(stateDir, tempRoot), "", log)
	if own, err := inMemory(); err == nil {
		cleanGone(ctx, sharedMemory, own, log)
	}
}

// cleanGone removes muster's directories whose names are own and the number of
// a dead process.
func cleanGone(ctx context.Context, root, own string, log *slog.Logger) {
	entries, err := os.ReadDir(root)
	if err != nil && !IsAbsent(err) {
		log.WarnContext(ctx, "could not search litter of killed runs", "directory", root, "error", err)
	}
	for _, entry := range entries {
		rest, ours := strings.CutPrefix(entry.Name(), own)
		text, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(text)
		if !ours || err != nil || unix.Kill(pid, 0) != unix.ESRCH || !isOwnDir(entry) {
			continue
		}
		path := filepath.Join(root, entry.Name())
		if err := os.RemoveAll(path); err != nil {
			log.WarnContext(ctx, "could not remove litter of a killed run", "directory", path, "error", err)
		}
	}
}

// isOwnDir reports whether a directory belongs to this user: anybody may make
// one in memory.
func isOwnDir(entry os.DirEntry) bool {
	info, err := entry.Info()
	if err != nil || !info.IsDir() {
		return false
	}
	st, is := info.Sys().(*syscall.Stat_t)

	return is && st.Uid == uint32(os.Geteuid())
}
