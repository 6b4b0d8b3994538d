package state

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// stateFormat is the format of the state directory that this version reads and writes. The file format
// contains it as text. A new format needs a conversion.
const stateFormat = "1"

// ErrFormat means that this version does not know the format of the state directory.
var ErrFormat = errors.New("unknown format of the state directory")

// ErrDenied means that this user may not use the state directory. The text is the remedy.
var ErrDenied = errors.New("run it as root, or give it a directory of its own with --state-dir")

// withRemedy returns an error of a state directory, with ErrDenied for missing permission.
func withRemedy(what string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w (%w)", what, err, ErrDenied)
	}

	return fmt.Errorf("%s: %w", what, err)
}

// OpenState checks the format of the state directory before any other access. With write, it creates a
// missing directory and writes the format file if there is none. It returns ErrFormat for an unknown format,
// paths.ErrUntrusted if other users may change the directory, and paths.ErrUnsafe if they may replace it, and
// then changes nothing. Without a state directory it does nothing.
func (d *Dir) OpenState(write bool) error {
	if d.path == "" {
		return nil
	}
	if err := d.checked.check(d.path); err != nil {
		return withRemedy("state directory", err)
	}
	path := filepath.Join(d.path, "format")
	mark, settled := formatMark(path)
	if settled && d.isKnown(mark) {
		return nil
	}
	text, err := readStart(path)
	switch format := strings.TrimSpace(string(text)); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		if !write && errors.Is(err, fs.ErrPermission) {
			return nil // other files are not readable either
		}
		return withRemedy("format of the state directory", err)
	case format == stateFormat:
		if settled {
			d.know(mark)
		}
		return nil
	case format != "":
		return fmt.Errorf("%w: %s holds %q, this version knows %s: use the version of muster that wrote it, or another directory (--state-dir)", ErrFormat, path, format, stateFormat)
	case !write:
		return nil
	}
	if err := Make(d.path); err != nil {
		return err
	}

	// A kill before the write leaves an empty file, which counts as missing.
	return os.WriteFile(path, []byte(stateFormat+"\n"), 0o600)
}

// maxFormat is the maximum size of the format file.
const maxFormat = 80

// errNotRegular means that the format is not a regular file, for example a pipe.
var errNotRegular = errors.New("it is not a regular file: remove it")

// readStart returns the first maxFormat bytes of a regular file. It does not wait for the writer
// of a pipe.
func readStart(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, err
	}

	return io.ReadAll(io.LimitReader(f, maxFormat))
}

// formatMark returns the mark of the format file at path. The mark is unsettled if a later file could have
// the same mark: the file is missing or very new.
func formatMark(path string) (mark fileMark, settled bool) {
	const tick = 2 * time.Second // longer than a tick of any file system's clock
	var st unix.Stat_t
	err := paths.Retry(func() error { return unix.Stat(path, &st) })

	return markOf(&st), err == nil && time.Since(time.Unix(st.Ctim.Unix())) > tick
}

// isKnown reports whether the format file with this mark was already read and has the format of this version.
func (d *Dir) isKnown(format fileMark) bool {
	d.mu.Lock()
	defer d.mu.Unlock()

	return d.format == format
}

func (d *Dir) know(format fileMark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.format = format
}

// Make creates a state directory and its missing parents. It returns paths.ErrUntrusted if users other than
// root and the running user may change the directory, and paths.ErrUnsafe if they may replace it, and then
// creates nothing. So later access by path is safe.
func Make(dir string) error {
	exists, err := Check(dir)
	if err == nil && !exists {
		if err = makeDir(dir, 0o700); err == nil {
			_, err = Check(dir)
		}
	}
	if err != nil {
		return withRemedy("could not make state directory", err)
	}

	return nil
}

// makeDir creates a directory and its parents below a directory where no other user can replace them.
func makeDir(path string, mode uint32) error {
	parent, err := paths.OpenDir(filepath.Dir(path))
	if paths.IsAbsent(err) {
		if err = makeDir(filepath.Dir(path), 0o755); err == nil {
			parent, err = paths.OpenDir(filepath.Dir(path))
		}
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := parent.CheckOwn(); err != nil {
		return err
	}
	if err := paths.Retry(func() error { return unix.Mkdirat(parent.Fd(), filepath.Base(path), mode) }); err != nil && err != unix.EEXIST {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}

	return parent.Sync()
}

// Check checks a directory, or the nearest parent directory that exists, and reports whether the directory exists. The
// error wraps paths.ErrUntrusted if users other than root and the running user may change it, and paths.ErrUnsafe if they
// could exchange it. A path reaches directories of root and the running user only through such directories.
func Check(path string) (exists bool, err error) {
	dir, exists, err := nearest(path)
	switch {
	case err != nil:
		return false, err
	case !exists:
		return false, errors.Join(dir.CheckOwn(), dir.Close())
	}
	var st unix.Stat_t
	if err = dir.Stat(".", &st); err == nil {
		err = paths.Author{}.Check(path, &st, paths.Trusted)
	}

	return true, errors.Join(err, dir.Close())
}

// nearest opens a directory, or its nearest existing parent.
func nearest(path string) (dir *paths.Dir, exact bool, err error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, false, err
	}
	var notDir error
	for at := full; ; at = filepath.Dir(at) {
		dir, err := paths.OpenDir(at)
		switch {
		case err == nil && notDir != nil:
			// A user who may exchange the file is the worse problem.
			return nil, false, cmp.Or(errors.Join(dir.CheckOwn(), dir.Close()), notDir)
		case err == nil:
			return dir, at == full, nil
		case !paths.IsAbsent(err):
			return nil, false, err
		}
		// Another process may have created the directory since.
		if info, err := os.Lstat(at); err == nil && !info.IsDir() {
			notDir = fmt.Errorf("%s is not a directory: remove it, or use another directory", at)
		}
	}
}

// CheckWritable returns an error if the running user could not create a state directory or write into it. It
// changes nothing.
func CheckWritable(path string) error {
	dir, exists, err := nearest(path)
	if err != nil {
		return withRemedy("state directory", err)
	}
	defer dir.Close()
	err = paths.Retry(func() error { return unix.Faccessat(dir.Fd(), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS) })
	switch {
	case err == nil:
		return nil
	case exists:
		return withRemedy("cannot write to the state directory", err)
	default:
		return withRemedy("cannot make the state directory", err)
	}
}
