package paths

import (
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"
	"syscall"
)

// MountTable is the table of mounts of this process. It is not safe for concurrent use, except Close.
// Create it with OpenMountTable.
type MountTable struct {
	file   *os.File
	closed atomic.Bool
	conn   syscall.RawConn
	known  map[Mount]struct{}
}

// The file of the table. The kernel wakes pollers of the file after each change.
const mountInfo = "/proc/self/mountinfo"

// OpenMountTable opens the table and reads it.
func OpenMountTable() (*MountTable, error) {
	file, err := os.Open(mountInfo)
	if err != nil {
		return nil, err
	}
	t := &MountTable{file: file}
	if t.conn, err = file.SyscallConn(); err == nil {
		t.known, err = t.read()
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}

	return t, nil
}

// read reads the table by the open descriptor, because opening another one may fail.
func (t *MountTable) read() (map[Mount]struct{}, error) {
	text, err := io.ReadAll(io.NewSectionReader(t.file, 0, math.MaxInt64))
	if err != nil {
		return nil, err
	}

	return ParseMounts(text), nil
}

// Wait waits until the mounts differ from the mounts at OpenMountTable or the last Wait, and returns the
// changed paths. It returns os.ErrClosed after Close. Other errors mean that the kernel reports no changes.
func (t *MountTable) Wait() (changed []string, err error) {
	var failed error
	// The function is called before the wait and after each event, so no change is missed.
	err = t.conn.Read(func(uintptr) bool {
		var now map[Mount]struct{}
		if now, failed = t.read(); failed != nil {
			return true
		}
		changed = ChangedMounts(t.known, now)
		t.known = now

		return len(changed) > 0
	})
	switch {
	case t.closed.Load():
		err = os.ErrClosed
	case failed != nil:
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for mounts: %w", err)
	}

	return changed, nil
}

// Close ends Wait.
func (t *MountTable) Close() {
	t.closed.Store(true)
	_ = t.file.Close()
}
