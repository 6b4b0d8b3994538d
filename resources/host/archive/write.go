package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

// writer writes checked entries below a directory. If another user changes the directory at the same time, it
// writes nothing outside, and changes no existing file.
type writer struct {
	root    *os.Root
	path    string
	options Options
	format  Format
	// fresh means that the directory was empty: existing names are refused, and modes are exact, except that
	// the owner may change directories.
	fresh bool
	umask fs.FileMode
	// late are the directories that get their attributes at the end. known are their names.
	late   []lateDirectory
	known  map[string]bool
	made   map[string]fs.FileInfo
	buffer []byte
}

// lateDirectory is a directory that stays writable until its files are written.
type lateDirectory struct {
	entry
	info fs.FileInfo
	// keeps leaves mode and owner as they are.
	keeps bool
	// existed means that the writer did not create it.
	existed bool
}

func newWriter(root *os.Root) *writer {
	return &writer{root: root, known: map[string]bool{}, made: map[string]fs.FileInfo{}, buffer: make([]byte, readBuffer)}
}

func (w *writer) write(e entry, content io.Reader) error {
	return w.locate(w.writeEntry(e, content), e.name)
}

func (w *writer) writeEntry(e entry, content io.Reader) error {
	if err := w.makeParents(path.Dir(e.name)); err != nil {
		return err
	}
	switch e.kind {
	case directory:
		return w.directory(e)
	case symbolicLink:
		if err := w.replace(e.name, func() error { return w.root.Symlink(e.target, e.name) }); err != nil {
			return err
		}
		return w.linkAttributes(e)
	case hardLink:
		return w.hardLink(e)
	default:
		return w.file(e, content)
	}
}

func (w *writer) makeParents(name string) error {
	if w.known[name] || name == "." {
		return nil
	}
	if err := w.makeParents(path.Dir(name)); err != nil {
		return err
	}
	mode := fs.FileMode(0o777)
	if w.fresh {
		mode = 0o755
	}
	err := w.makeDirectory(name, mode&^w.umask)
	if errors.Is(err, os.ErrExist) {
		info, look := w.root.Stat(name)
		switch {
		case look != nil:
			return look
		case !info.IsDir():
			return fmt.Errorf("%w: %s is not a directory", ErrUnsafeEntry, name)
		}
		err = nil
	}
	w.known[name] = err == nil

	return err
}

// directory makes a directory, or records the changes of an existing one. Unlike tar, unzip accepts a link to
// a directory, and does not change existing directories.
func (w *writer) directory(e entry) error {
	made := w.makeDirectory(e.name, 0o700)
	if errors.Is(made, os.ErrExist) {
		look := w.root.Lstat
		if w.format == Zip {
			look = w.root.Stat
		}
		if info, err := look(e.name); err == nil && info.IsDir() {
			if w.format == Zip {
				return nil
			}
			made := w.made[e.name]
			existed := made == nil || !os.SameFile(made, info)
			w.late = append(w.late, lateDirectory{entry: e, info: info, keeps: w.keeps(e) || existed && isForeign(info), existed: existed})
			return nil
		}
		made = w.replace(e.name, func() error { return w.makeDirectory(e.name, 0o700) })
	}
	if made != nil {
		return made
	}
	w.known[e.name] = true
	w.late = append(w.late, lateDirectory{entry: e, info: w.made[e.name]})

	return nil
}

// makeDirectory makes a directory without inherited access control lists, which override the umask. If it is
// not empty, the owner of the target has replaced it.
func (w *writer) makeDirectory(name string, mode fs.FileMode) error {
	if err := w.root.Mkdir(name, mode); err != nil {
		return err
	}
	f, err := w.root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Readdirnames(1); !errors.Is(err, io.EOF) {
		return errors.Join(fmt.Errorf("%w: another user replaced the directory %s", ErrUnsafeEntry, name), err)
	}
	if w.made[name], err = f.Stat(); err != nil {
		return err
	}

	return files.DropLists(int(f.Fd()))
}

func isForeign(info fs.FileInfo) bool {
	return paths.PartyOf(0, info.Sys().(*syscall.Stat_t).Uid) != paths.Trusted
}

// keeps reports whether an existing directory keeps its mode and owner.
func (w *writer) keeps(e entry) bool {
	if w.fresh {
		return e.name == "."
	}

	return !w.options.Preserve
}

// replace makes a name. It replaces a file, a link or an empty directory.
func (w *writer) replace(name string, create func() error) error {
	err := create()
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	if w.fresh {
		return fmt.Errorf("%w: it exists already", ErrUnsafeEntry)
	}
	if err := w.root.Remove(name); err != nil {
		return err
	}

	return create()
}

func (w *writer) file(e entry, content io.Reader) error {
	var f *os.File
	err := w.replace(e.name, func() (err error) {
		f, err = w.root.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	if err := files.DropLists(int(f.Fd())); err != nil {
		return errors.Join(err, f.Close())
	}
	var out io.Writer = struct{ io.Writer }{f}
	if e.sparse {
		out = holes{f}
	}
	n, err := io.CopyBuffer(out, content, w.buffer)
	if err == nil && e.sparse {
		err = f.Truncate(n)
	}
	if err == nil {
		err = w.attributes(f, e)
	}

	return errors.Join(err, f.Close())
}

// holes skips blocks of zeros, so that the file is sparse.
type holes struct{ f *os.File }

// Write writes or skips a block.
func (h holes) Write(b []byte) (int, error) {
	if slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) {
		return h.f.Write(b)
	}
	_, err := h.f.Seek(int64(len(b)), io.SeekCurrent)

	return len(b), err
}

func (w *writer) hardLink(e entry) error {
	info, err := w.root.Lstat(e.target)
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %q is not a file unpacked before", ErrUnsafeEntry, e.target)
	}
	if there, err := w.root.Lstat(e.name); err == nil && os.SameFile(there, info) && !w.fresh {
		return nil
	}

	return w.replace(e.name, func() error { return w.root.Link(e.target, e.name) })
}

// finish sets the attributes of the directories, the deepest first, because a change in a directory changes
// its time.
func (w *writer) finish() error {
	slices.SortStableFunc(w.late, func(a, b lateDirectory) int { return strings.Compare(b.name, a.name) })
	for _, d := range w.late {
		if err := w.finishDirectory(d); err != nil {
			return fmt.Errorf("%q: %w", d.name, w.locate(err, d.name))
		}
	}

	return nil
}

func (w *writer) finishDirectory(d lateDirectory) error {
	f, err := w.root.OpenFile(d.name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !os.SameFile(info, d.info):
		return fmt.Errorf("%w: another user replaced the directory", ErrUnsafeEntry)
	case d.keeps:
		return setTime(f, d.modified)
	}
	if w.fresh {
		d.mode |= 0o700
	} else if d.existed {
		if err := w.checkOwner(d); err != nil {
			return err
		}
	}

	return w.attributes(f, d.entry)
}

// checkOwner returns paths.ErrUnsafe if the owner or mode of an existing directory would change and a walk
// does not lead to it, because the owner of the target may have moved it there.
func (w *writer) checkOwner(d lateDirectory) error {
	there, mode := d.info.Sys().(*syscall.Stat_t), d.info.Mode()&^fs.ModeDir
	if uid, gid, _ := w.owner(d.entry); int(there.Uid) == uid && int(there.Gid) == gid && mode == d.mode&^fs.ModeDir {
		return nil
	}
	var st unix.Stat_t
	dir, err := paths.OpenDir(filepath.Join(w.path, d.name))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := paths.Retry(func() error { return unix.Fstat(dir.Fd(), &st) }); err != nil {
		return err
	}
	if uint64(st.Dev) != uint64(there.Dev) || st.Ino != there.Ino {
		return fmt.Errorf("%w: another user replaced the directory", ErrUnsafeEntry)
	}

	return nil
}

// attributes sets owner, mode and time of a new file or directory. The owner comes first, because a change of
// owner clears special bits.
func (w *writer) attributes(f *os.File, e entry) error {
	mode := e.mode
	if !w.options.Preserve {
		mode &= fs.ModePerm
	}
	if !w.options.Preserve || !e.asked {
		mode &^= w.umask
	}
	if uid, gid, changes := w.owner(e); changes {
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}

	return setTime(f, e.modified)
}

func (w *writer) owner(e entry) (uid, gid int, changes bool) {
	if !w.options.Preserve || e.owner == nil {
		return 0, 0, false
	}
	uid, gid = w.options.ResolveOwner(*e.owner)

	return uid, gid, true
}

func setTime(f *os.File, t time.Time) error {
	if t.IsZero() {
		return nil
	}
	// Kernels before 5.8 do not support a descriptor here.
	times := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Sec: t.Unix(), Nsec: int64(t.Nanosecond())}}
	err := paths.Retry(func() error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), times, 0)
	})
	if err != nil {
		return &fs.PathError{Op: "utimensat", Path: f.Name(), Err: err}
	}

	return nil
}

func (w *writer) linkAttributes(e entry) error {
	uid, gid, changes := w.owner(e)
	if !changes && e.modified.IsZero() {
		return nil
	}
	f, err := w.openLink(e.name)
	if err != nil {
		return err
	}
	defer f.Close()
	if changes {
		if err := paths.Retry(func() error { return unix.Fchownat(int(f.Fd()), "", uid, gid, unix.AT_EMPTY_PATH) }); err != nil {
			return &fs.PathError{Op: "chown", Path: e.name, Err: err}
		}
	}

	return setTime(f, e.modified)
}

// openLink opens a new symbolic link itself. The owner of the target may have replaced it.
func (w *writer) openLink(name string) (*os.File, error) {
	dir, err := w.root.Open(path.Dir(name))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd := -1
	err = paths.Retry(func() (err error) {
		fd, err = unix.Openat(int(dir.Fd()), path.Base(name), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	err = paths.Retry(func() error { return unix.Fstat(fd, &st) })
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFLNK || st.Nlink > 1) {
		err = fmt.Errorf("%w: another user replaced the link %s", ErrUnsafeEntry, name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return f, nil
}

// locate sets the path of an error to the path of the entry. The paths of an os.Root are relative or lead
// through a descriptor.
func (w *writer) locate(err error, entry string) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		at.Path = w.shown(at.Path, entry)
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		link.New = w.shown(link.New, entry)
	}

	return err
}

func (w *writer) shown(path, entry string) string {
	rest, below := strings.CutPrefix(path, w.root.Name()+"/")
	switch {
	case below || !filepath.IsAbs(path):
		return filepath.Join(w.path, rest)
	case strings.HasPrefix(path, "/proc/self/fd/"):
		return filepath.Join(w.path, entry)
	default:
		return path
	}
}

// withRemedy adds the file system and the remedy to an error of a full or read-only file system. path is the
// target, for an error without a path.
func withRemedy(err error, path string) error {
	var at *fs.PathError
	if errors.As(err, &at) && filepath.IsAbs(at.Path) {
		path = filepath.Dir(at.Path)
	}
	switch {
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: the file system at %s is full, or has too many files: make room there", err, mountPoint(path))
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: mount %s writable; if it was, the kernel's log says why it no longer is", err, mountPoint(path))
	default:
		return err
	}
}

// mountPoint returns the topmost directory of the file system of a path. The path may be missing.
func mountPoint(path string) string {
	device := func(path string) (uint64, bool) {
		var st unix.Stat_t
		err := paths.Retry(func() error { return unix.Stat(path, &st) })
		return uint64(st.Dev), err == nil
	}
	own, exists := device(path)
	for path != "/" && path != "." {
		above := filepath.Dir(path)
		if there, isThere := device(above); exists && there != own {
			break
		} else if !exists {
			own, exists = there, isThere
		}
		path = above
	}

	return path
}

// umask reads the umask of this process. The system call would also set it.
func umask() (fs.FileMode, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("could not read the umask: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "Umask:"); found {
			mask, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32)
			return fs.FileMode(mask), err
		}
	}

	return 0, errors.New("could not read the umask: it is not in /proc/self/status")
}
