package host

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileTable is the table of a file as it was when it was read.
type fileTable struct {
	accountTable
	// fileStamp is that of the file, the zero one where another file could have it.
	stamp fileStamp
}

// fileStamp is another one once a file is replaced or written to, but for what is written
// into it within the tick of its clock.
type fileStamp struct {
	dev, inode   uint64
	size         int64
	mtime, ctime unix.Timespec
}

// clockTick is more than that of the clock of any file system.
const clockTick = 2 * time.Second

// readTable reads the table of a file. A machine without the file has no local
// accounts.
func readTable(path string) (fileTable, error) {
	before, began := stampOf(path), time.Now()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileTable{}, err
	}
	t := fileTable{accountTable: parseAccounts(string(content))}
	if changed := time.Unix(before.ctime.Unix()); before == stampOf(path) && changed.Before(began.Add(-clockTick)) {
		t.stamp = before
	}

	return t, nil
}

// isOf reports whether the table is that of the file which is at a path now.
func (t fileTable) isOf(path string) bool { return t.stamp != fileStamp{} && t.stamp == stampOf(path) }

// stampOf returns the stamp of the file at a path, the zero one where none is known.
func stampOf(path string) fileStamp {
	var st unix.Stat_t
	for {
		switch err := unix.Stat(path, &st); err {
		case nil:
			return fileStamp{dev: uint64(st.Dev), inode: st.Ino, size: st.Size, mtime: st.Mtim, ctime: st.Ctim}
		case unix.EINTR:
		default:
			return fileStamp{}
		}
	}
}
