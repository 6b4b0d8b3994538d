package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// litterFile, in the state directory, records the directories a run writes
// into: one quoted path a line.
const litterFile = "litter"

// litterRecord is the open record of a run.
type litterRecord struct {
	file   *os.File
	joined bool

	mu    sync.Mutex
	known map[string]bool
	// left are directories of an earlier run that could not be cleaned.
	left []string
}

func openLitter(stateDir string, joined bool) (*litterRecord, error) {
	if err := Make(stateDir); err != nil {
		return nil, err
	}
	path := filepath.Join(stateDir, litterFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("could not open the record of litter: %w", err)
	}
	r := &litterRecord{file: f, joined: joined, known: map[string]bool{}}
	dir, err := paths.OpenDir(stateDir)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return r, nil
}

// RecordLitter records a directory durably before a run first writes into it. Without a run it records
// nothing, because only the run lock prevents another run from clearing the record.
func (d *Dir) RecordLitter(dir string) error {
	d.mu.Lock()
	r := d.litter
	d.mu.Unlock()
	if r == nil {
		return nil
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[full] {
		return nil
	}
	if err := r.add(full); err != nil {
		return fmt.Errorf("could not record directory: %w", err)
	}
	r.known[full] = true

	return nil
}

func (r *litterRecord) add(dir string) error {
	if _, err := r.file.WriteString(strconv.Quote(dir) + "\n"); err != nil {
		return err
	}

	return paths.Retry(func() error { return unix.Fdatasync(int(r.file.Fd())) })
}

func (r *litterRecord) clean(ctx context.Context, log *slog.Logger) {
	if r.joined {
		return
	}
	content, err := os.ReadFile(r.file.Name())
	if err != nil {
		log.WarnContext(ctx, "could not read the record of litter", "error", err)
		return
	}
	for _, dir := range parseLitter(string(content)) {
		removed, err := cleanDir(dir)
		if len(removed) > 0 {
			log.InfoContext(ctx, "removed litter of a killed run", "directory", dir, "files", removed)
		}
		if err != nil {
			log.WarnContext(ctx, "could not remove litter of a killed run", "directory", dir, "error", err)
		}
		// Never clean a path that became unsafe, because it may lead to another directory.
		if err != nil && !errors.Is(err, paths.ErrUnsafe) {
			r.left = append(r.left, dir)
		}
	}
}

// parseLitter returns the distinct directories of a record. It skips an incomplete last line: muster writes
// into a directory only after its line is complete.
func parseLitter(text string) []string {
	var dirs []string
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		dir, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
		if err != nil || !filepath.IsAbs(dir) || seen[dir] {
			continue
		}
		seen[dir] = true
		dirs = append(dirs, dir)
	}

	return dirs
}

func cleanDir(path string) ([]string, error) {
	place, err := paths.OpenDir(path)
	if paths.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer place.Close()
	dir, err := place.Readable()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	temporary := regexp.MustCompile(`^\.muster-[A-Z2-7]{26,}$`)
	var removed []string
	var errs []error
	for _, name := range names {
		if !temporary.MatchString(name) || !isOurs(dir, name) {
			continue
		}
		if err := paths.Retry(func() error { return unix.Unlinkat(int(dir.Fd()), name, 0) }); err != nil {
			errs = append(errs, &fs.PathError{Op: "remove", Path: filepath.Join(path, name), Err: err})
			continue
		}
		removed = append(removed, name)
	}

	return removed, errors.Join(errs...)
}

// isOurs reports whether a name is a file or link of this user. Root may have changed its owner just before
// the kill.
func isOurs(dir *os.File, name string) bool {
	var st unix.Stat_t
	err := paths.Retry(func() error { return unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	uid := os.Geteuid()

	kind := st.Mode & unix.S_IFMT

	return err == nil && (kind == unix.S_IFREG || kind == unix.S_IFLNK) && (uid == 0 || st.Uid == uint32(uid))
}

// fileMark identifies a file and its version. It differs after a write in a later tick of the file system's
// clock.
type fileMark struct {
	dev, inode uint64
	size       int64
	changed    unix.Timespec
}

func markOf(st *unix.Stat_t) fileMark { return fileMark{uint64(st.Dev), st.Ino, st.Size, st.Ctim} }

func litterMark(path string) (fileMark, error) {
	var st unix.Stat_t
	err := paths.Retry(func() error { return unix.Lstat(path, &st) })

	return markOf(&st), err
}

// maxKept limits the directories of a reused record. The first run after a kill searches all of them.
const maxKept = 100

// mayStay reports whether the next run can reuse the record.
func (r *litterRecord) mayStay() bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return !r.joined && len(r.left) == 0 && len(r.known) <= maxKept
}

// end clears the record, except for directories that could not be cleaned.
func (r *litterRecord) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	switch {
	case r.joined:
	case len(r.left) == 0:
		err = os.Remove(r.file.Name())
	default:
		err = r.file.Truncate(0)
		for _, dir := range r.left {
			err = errors.Join(err, r.add(dir))
		}
	}
	if err = errors.Join(err, r.file.Close()); err != nil {
		return fmt.Errorf("could not clear the record of litter: %w", err)
	}

	return nil
}

func (r *litterRecord) close() error { return r.file.Close() }

// tempRoot contains the temporary directories, in the state directory.
const tempRoot = "tmp"

// TempDir creates a private directory for this process in the state directory, with prefix in its name. The
// caller removes it. BeginRun removes the directories of killed processes. Without a state directory it
// returns ErrNone.
func (d *Dir) TempDir(prefix string) (string, error) {
	if d.path == "" {
		return "", ErrNone
	}
	if err := d.OpenState(true); err != nil {
		return "", err
	}
	root := filepath.Join(d.path, tempRoot)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("could not make temporary directory: %w", err)
	}

	return os.MkdirTemp(root, fmt.Sprintf("%d-%s-", os.Getpid(), prefix))
}

// CleanTemp removes the temporary directories of dead processes and of earlier processes with the same id, as
// in a container. Call it before the first TempDir. It also removes temporary files from own, directories in
// the state directory that only this process writes to.
func (d *Dir) CleanTemp(ctx context.Context, own ...string) {
	if d.path == "" {
		return
	}
	cleanTemp(ctx, d.path, d.log, func(pid int) bool { return pid == os.Getpid() || isDead(pid) })
	for _, name := range own {
		dir := filepath.Join(d.path, name)
		if _, err := cleanDir(dir); err != nil {
			d.log.WarnContext(ctx, "could not remove litter of a killed process", "directory", dir, "error", err)
		}
	}
}

func isDead(pid int) bool { return pid > 0 && unix.Kill(pid, 0) == unix.ESRCH }

func cleanTemp(ctx context.Context, stateDir string, log *slog.Logger, ended func(pid int) bool) {
	root := filepath.Join(stateDir, tempRoot)
	entries, err := os.ReadDir(root)
	if err != nil && !paths.IsAbsent(err) {
		log.WarnContext(ctx, "could not search litter of killed runs", "directory", root, "error", err)
	}
	for _, entry := range entries {
		text, _, _ := strings.Cut(entry.Name(), "-")
		pid, err := strconv.Atoi(text)
		if err != nil || !entry.IsDir() || !ended(pid) {
			continue
		}
		path := filepath.Join(root, entry.Name())
		if err := paths.RemoveTree(ctx, path); err != nil {
			log.WarnContext(ctx, "could not remove litter of a killed run", "directory", path, "error", err)
		}
	}
}
