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
	// stamp identifies the version of the file; it is zero if a later version could have the same stamp.
	stamp fileStamp
}

// fileStamp identifies a version of a file. It changes when the file is replaced or written, except
// for two writes within one tick of the file system's clock.
type fileStamp struct {
	dev, inode   uint64
	size         int64
	mtime, ctime unix.Timespec
}

// clockTick is longer than the tick of any file system's clock.
const clockTick = 2 * time.Second

// readTable reads the table of a file. A missing file is an empty table.
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

// isOf reports whether the table is up to date with the file at a path.
func (t fileTable) isOf(path string) bool { return t.stamp != fileStamp{} && t.stamp == stampOf(path) }

// stampOf returns the stamp of the file at a path, or the zero stamp if the file cannot be read.
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
