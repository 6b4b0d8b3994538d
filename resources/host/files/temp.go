package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tempRoot is where temporary directories are, in the state directory.
const tempRoot = "tmp"

// TempDir makes a directory of this process in the state directory, that nobody
// else may enter. The caller removes it; what a killed process leaves is
// removed by BeginRun of a later one. The prefix is part of its name. Without
// a state directory it is ErrNoStateDir.
func (d *Disk) TempDir(prefix string) (string, error) {
	if d.stateDir == "" {
		return "", ErrNoStateDir
	}
	root := filepath.Join(d.stateDir, tempRoot)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("could not make temporary directory: %w", err)
	}

	return os.MkdirTemp(root, fmt.Sprintf("%d-%s-", os.Getpid(), prefix))
}

// sharedMemory is a file system in memory, on nearly every machine.
const sharedMemory = "/dev/shm"

// MemoryDir makes a directory like TempDir, but in memory: nothing of a disk is
// touched. What killed processes left there goes first, also outside of a run. An
// error says that there is none; then TempDir does.
func (d *Disk) MemoryDir(ctx context.Context, prefix string) (string, error) {
	var fs unix.Statfs_t
	if err := Retry(func() error { return unix.Statfs(sharedMemory, &fs) }); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return "", errors.Join(fmt.Errorf("%s is no file system in memory", sharedMemory), err)
	}
	own, err := inMemory()
	if err != nil {
		return "", err
	}
	d.cleanGone(ctx, sharedMemory, own)

	return os.MkdirTemp(sharedMemory, fmt.Sprintf("%s%d-%s-", own, os.Getpid(), prefix))
}

// inMemory is how the names of our directories in memory begin. The processes
// of another namespace, which may share the memory, have numbers of their own.
func inMemory() (string, error) {
	namespace, err := os.Readlink("/proc/self/ns/pid")

	return "muster-" + strings.Trim(namespace, "pid:[]") + "-", err
}

// cleanTemp removes the temporary directories of processes that are gone.
func (d *Disk) cleanTemp(ctx context.Context) {
	d.cleanGone(ctx, filepath.Join(d.stateDir, tempRoot), "")
	if own, err := inMemory(); err == nil {
		d.cleanGone(ctx, sharedMemory, own)
	}
}

// cleanGone removes directories of ours whose names begin with own and the
// number of a process that is gone.
func (d *Disk) cleanGone(ctx context.Context, root, own string) {
	entries, err := os.ReadDir(root)
	if err != nil && !IsAbsent(err) {
		d.log.WarnContext(ctx, "could not look for what a killed run left behind", "directory", root, "error", err)
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
			d.log.WarnContext(ctx, "could not remove what a killed run left behind", "directory", path, "error", err)
		}
	}
}

// isOwnDir says that a directory is this user's: anybody may make one in memory.
func isOwnDir(entry os.DirEntry) bool {
	info, err := entry.Info()
	if err != nil || !info.IsDir() {
		return false
	}
	st, is := info.Sys().(*syscall.Stat_t)

	return is && st.Uid == uint32(os.Geteuid())
}
