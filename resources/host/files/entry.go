package files

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// Kind is the kind of file at a path.
type Kind int

// The kinds of an Entry.
const (
	Absent Kind = iota
	File
	Directory
	Link
	// Other is a fifo, socket or device.
	Other
)

// String returns the kind in words.
func (k Kind) String() string {
	return [...]string{"absent", "file", "directory", "link", "special file"}[k]
}

// Attrs are the owner and permission bits of a path.
type Attrs struct {
	UID, GID uint32
	Mode     fs.FileMode // permission bits only
}

// Entry is the result of lstat.
type Entry struct {
	Path    string
	Kind    Kind
	Size    int64
	ModTime time.Time
	// Mode holds the permission bits with setuid, setgid and sticky as in
	// chmod(1): 04755.
	Mode     uint32
	UID, GID uint32
	// Links are the names of the file.
	Links uint64

	// id and stamp are the key of a remembered digest.
	id    fileID
	stamp stamp
	// followed and from are how it was found.
	followed bool
	from     *approvals
}

// Look returns the entry at path without following a link in its last element.
// A missing one is Absent, not an error. A path that may not be read wraps
// fs.ErrPermission, one that somebody else could lead elsewhere ErrUnsafe.
func (d *Disk) Look(path string) (Entry, error) { return d.approved.look(path, false) }

// Follow is Look that follows links. A dangling link is Absent.
func (d *Disk) Follow(path string) (Entry, error) { return d.approved.look(path, true) }

// MayWrite returns an error when muster may not make, replace or remove entries
// of a directory.
func (d *Disk) MayWrite(path string) error {
	dir, err := d.approved.dir(path)
	if IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := Retry(func() error { return unix.Faccessat(dir.fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS) }); err != nil {
		return &fs.PathError{Op: "write in", Path: path, Err: err}
	}

	return nil
}

// MayExecute returns an error when a path cannot be executed: EACCES for a
// directory, as the system does.
func MayExecute(path string) error {
	var st unix.Stat_t
	if err := Retry(func() error { return unix.Stat(path, &st) }); err != nil {
		return err
	}
	if kindOf(&st) != File {
		return unix.EACCES
	}

	return Retry(func() error { return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) })
}

// IsOwn reports whether the entry belongs to the user whose file access rights
// this thread has: the effective user of the process.
func (e Entry) IsOwn() bool {
	// An invalid number changes nothing and returns the current user.
	uid, err := unix.SetfsuidRetUid(-1)

	return err == nil && e.Kind != Absent && e.UID == uint32(uid)
}

func entryOf(path string, st *unix.Stat_t) Entry {
	return Entry{
		Path:    path,
		Kind:    kindOf(st),
		Size:    st.Size,
		ModTime: time.Unix(st.Mtim.Unix()),
		Mode:    st.Mode & allBits,
		UID:     st.Uid,
		GID:     st.Gid,
		Links:   uint64(st.Nlink),
		id:      idOf(st),
		stamp:   stampOf(st),
	}
}

// specialBits are setuid, setgid and sticky; allBits adds the permissions.
const (
	specialBits = unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX
	allBits     = specialBits | 0o777
)

func kindOf(st *unix.Stat_t) Kind {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return Link
	default:
		return Other
	}
}

// IsAbsent reports whether an error means that nothing is at a path, also
// because a parent is a file.
func IsAbsent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

// Retry repeats a system call while signals interrupt it.
func Retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
