// Package state manages the state directory: its format, the locks of runs and of the agent,
// temporary directories, and the record of files that a killed run leaves in other
// directories. Other users cannot change the directory, so the package opens its files by path.
package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// ErrNone means that an operation needs a state directory and none is set.
var ErrNone = errors.New("no state directory is set")

// Dir is the state directory. It is safe for concurrent use. Create it with New.
type Dir struct {
	path string
	log  *slog.Logger
	// keeps means that runs reuse the record of litter.
	keeps bool

	mu     sync.Mutex
	litter *litterRecord
	// runs is the number of runs that write into litter.
	runs int
	// kept is the record of the last run. It is current if the file still has this mark.
	kept *litterRecord
	mark fileMark
}

// New returns the state directory at path, empty for none. Without one a run does not find the litter of a
// killed run. New accesses no file. log receives warnings and messages about removed litter.
func New(path string, log *slog.Logger) *Dir { return &Dir{path: path, log: log} }

// KeepLitter makes the runs of this process reuse the record of litter, so that a directory is recorded and
// synced once for many runs. Concurrent runs share the record. Call it before the first run of a process with
// many runs.
func (d *Dir) KeepLitter() { d.keeps = true }

// StateDir returns the path of the directory.
func (d *Dir) StateDir() string { return d.path }

// BeginRun removes the litter of killed runs, unless the run is joined: an enclosing run owns the record. It
// logs litter that it cannot remove and leaves it for the next run. It returns an error if the record cannot
// be read or written, or if another run of this process is active and the record is not reused.
func (d *Dir) BeginRun(ctx context.Context, joined bool) error {
	if d.path == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.litter != nil && !d.keeps {
		return errors.New("a run has begun already")
	}
	if d.litter == nil {
		d.litter = d.takeKept(joined)
	}
	if d.litter != nil {
		d.runs++
		return nil
	}
	record, err := openLitter(d.path, joined)
	if err != nil {
		return err
	}
	record.clean(ctx, d.log)
	if !joined {
		cleanTemp(ctx, d.path, d.log, isDead)
	}
	d.litter, d.runs = record, 1

	return nil
}

// takeKept returns the record of the last run of this process if no other process has run since. The run then
// has nothing to clean.
func (d *Dir) takeKept(joined bool) *litterRecord {
	record := d.kept
	d.kept = nil
	if record == nil {
		return nil
	}
	if now, err := litterMark(record.file.Name()); joined || err != nil || now != d.mark {
		_ = record.close() // no run writes to it any more
		return nil
	}

	return record
}

// EndRun ends a run. The last run closes the files that BeginRun opened. Without a run it does nothing.
func (d *Dir) EndRun() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs--; d.runs > 0 {
		return nil
	}
	d.runs = 0
	record := d.litter
	d.litter = nil
	if record == nil {
		return nil
	}
	if d.keeps && record.mayStay() {
		if mark, err := litterMark(record.file.Name()); err == nil {
			d.kept, d.mark = record, mark
			return nil
		}
	}

	return record.end()
}

// stateFormat is the format of the state directory that this version reads and writes. The file format
// contains it as text. A new format needs a conversion.
const stateFormat = "1"

// ErrFormat means that this version does not know the format of the state directory.
var ErrFormat = errors.New("unknown format of the state directory")

// ErrDenied means that this user may not use the state directory. The text is the remedy.
var ErrDenied = errors.New("run it as root, or set another directory with --state-dir")

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
	if _, err := Check(d.path); err != nil {
		return withRemedy("state directory", err)
	}
	path := filepath.Join(d.path, "format")
	text, err := readStart(path)
	switch format := strings.TrimSpace(string(text)); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		if !write && errors.Is(err, fs.ErrPermission) {
			return nil // other files are not readable either
		}
		return withRemedy("format of the state directory", err)
	case format == stateFormat:
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
			// Another user who may replace the file is the worse problem.
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
