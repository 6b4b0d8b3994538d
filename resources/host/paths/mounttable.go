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

// The file that has the table: the kernel wakes whoever polls it when that changes.
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

// read reads the table by the descriptor that is open: another one may not be had.
func (t *MountTable) read() (map[Mount]struct{}, error) {
	text, err := io.ReadAll(io.NewSectionReader(t.file, 0, math.MaxInt64))
	if err != nil {
		return nil, err
	}

	return ParseMounts(text), nil
}

// Wait waits until mounts differ from those of Open, or of the last Wait, and returns at
// which paths. Its error is os.ErrClosed after Close; others mean that the kernel tells nothing.
func (t *MountTable) Wait() (changed []string, err error) {
	var failed error
	// The function is called before it is waited for an event, and after each: none is lost.
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
