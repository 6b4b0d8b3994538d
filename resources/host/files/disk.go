// Package files accesses the files of the node by descriptor: a change applies to the checked file.
package files

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/state"
)

// Options configure a Disk.
type Options struct {
	// StateDir holds the record of temporary files and the temporary directories. Without it a run does not
	// find the temporary files of a killed run.
	StateDir string
	// Log receives warnings and messages about removed temporary files. Nil discards them.
	Log *slog.Logger
	// Label returns the default SELinux label of a path, or the empty string. It is nil on a
	// machine without SELinux.
	Label func(ctx context.Context, path string) (string, error)
}

// Disk accesses the file systems of this machine. It is safe for concurrent use. Create it with New.
type Disk struct {
	*state.Dir
	log     *slog.Logger
	label   func(ctx context.Context, path string) (string, error)
	paths   paths.Resolver
	digests digestCache
	buffers buffers
	// Units counts changes of systemd unit files.
	Units UnitFiles
}

// New returns a disk without accessing any file.
func New(o Options) *Disk {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	return &Disk{Dir: state.New(o.StateDir, o.Log), log: o.Log, label: o.Label}
}

// RunOptions are the options of a run.
type RunOptions struct {
	// ReadAll clears the cache of digests, so that the run reads all content.
	ReadAll bool
	// Joined marks a run within another run, which owns the record of temporary files: the joined run does
	// not clean up.
	Joined bool
}

// BeginRun begins a run in the state directory. It clears the cache of digests for ReadAll.
func (d *Disk) BeginRun(ctx context.Context, o RunOptions) error {
	if o.ReadAll {
		d.digests.forget()
	}

	return d.Dir.BeginRun(ctx, o.Joined)
}

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

// Attrs are the owner and the permission bits of a path.
type Attrs struct {
	UID, GID uint32
	Mode     fs.FileMode // permission bits only
	// Special are the setuid, setgid and sticky bits. A file gets exactly these bits. Manages is the mask of the
	// special bits that a directory gets; it contains Special.
	Special, Manages uint32
}

// Bits returns the permission bits with the special bits.
func (a Attrs) Bits() uint32 { return uint32(a.Mode.Perm()) | a.Special }

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
	// Links is the number of names of the file.
	Links uint64
	// Listed reports whether a foreign entry has an access control list.
	Listed bool

	// id and stamp are the key of a cached digest.
	id    fileID
	stamp stamp
	// followed and from are the way to the entry.
	followed bool
	from     *paths.Resolver
	// foreign is a comparable error.
	foreign error
}

// Look returns the entry at path without following a link in its last element. A missing entry is Absent, not
// an error. An unreadable path is fs.ErrPermission. A path that another user could redirect is
// paths.ErrUnsafe.
func (d *Disk) Look(path string) (Entry, error) { return look(&d.paths, path, false) }

// Follow returns the entry at path and follows links. A dangling link is Absent.
func (d *Disk) Follow(path string) (Entry, error) { return look(&d.paths, path, true) }

func look(from *paths.Resolver, path string, follow bool) (Entry, error) {
	var st unix.Stat_t
	switch foreign, err := from.Stat(path, &st, follow); {
	case paths.IsAbsent(err):
		return Entry{Path: path}, nil
	case err != nil:
		return Entry{Path: path}, err
	default:
		entry := entryOf(path, &st)
		entry.followed, entry.from, entry.foreign = follow, from, foreign
		entry.Listed = foreign != nil && hasList(path)
		return entry, nil
	}
}

// Foreign returns paths.ErrUnsafe for an entry in a directory of an untrusted user who does not own the
// entry. The user may have moved it there, so its content must not be shown.
func (e Entry) Foreign() error { return e.foreign }

// MayChange returns the error of Foreign if the attributes change the owner of a foreign entry or extend its
// mode.
func (e Entry) MayChange(a Attrs) error {
	if e.UID == a.UID && e.GID == a.GID && a.Bits()&^e.Mode == 0 {
		return nil
	}

	return e.foreign
}

// MayWrite returns an error if muster may not create, replace or remove entries of the directory. The entry
// may be absent.
func (d *Disk) MayWrite(path string) error { return d.paths.MayWrite(path) }

// IsOwn reports whether the entry belongs to the user whose file access rights this thread uses: the
// effective user of the process.
func (e Entry) IsOwn() bool {
	// An invalid number changes nothing and returns the current user.
	uid, err := unix.SetfsuidRetUid(-1)

	return err == nil && e.Kind != Absent && e.UID == uint32(uid)
}

// OfOthers reports whether users other than root and the running user own the file or may write to it.
// Members of its group count as trusted like its owner.
func (e Entry) OfOthers() bool {
	return paths.PartyOf(e.Mode, e.UID) != paths.Trusted || e.Mode&unix.S_IWOTH != 0
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

// specialBits are setuid, setgid and sticky. allBits also contains the permission bits.
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

// Sentinel errors of files, wrapped with a path. They also wrap the system's error, so errors.Is finds
// fs.ErrPermission and the error numbers of package syscall.
var (
	// ErrNoParent means that the parent of a path is missing or not a directory.
	ErrNoParent = errors.New("is not a directory")
	// ErrNotDirectory means that a directory is needed.
	ErrNotDirectory = errors.New("exists and is not a directory")
	// ErrNotRegular means that a regular file is needed.
	ErrNotRegular = errors.New("is not a regular file")
	// ErrLink means that the path is a symbolic link, which the operation does not follow.
	ErrLink = errors.New("is a symbolic link")
	// ErrReplaced means that the file was replaced since the look.
	ErrReplaced = errors.New("was replaced during the operation")
	// ErrLinks means that the file has several names, which may be anywhere.
	ErrLinks = errors.New("has several names (hard links): its owner and mode are not changed, remove the other names (find / -samefile)")
	// ErrNotEmpty means that a directory has entries.
	ErrNotEmpty = errors.New("directory is not empty")
	// ErrTooLarge means that a file exceeds the reader's limit.
	ErrTooLarge = errors.New("file is too large")
	// ErrRefused means that the path is never changed: the root directory or an empty path.
	ErrRefused = errors.New("refused")
)

// Mark identifies the file at a path and its version, as far as the file system shows it. It differs after
// the file is replaced, its mode or owner changes, or its content changes in a later tick of the file
// system's clock. The zero Mark means no file.
type Mark struct {
	id       fileID
	stamp    stamp
	mode     uint32
	uid, gid uint32
}

// Mark returns the mark of the entry.
func (e Entry) Mark() Mark {
	return Mark{id: e.id, stamp: e.stamp, mode: e.Mode, uid: e.UID, gid: e.GID}
}
