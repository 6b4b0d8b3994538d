package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// Open opens a regular file for reading. The caller closes it. Another kind of file is ErrNotRegular; Open
// does not wait for a fifo. It follows links like paths.OpenDir.
func Open(path string) (*os.File, error) {
	entry, err := look(&paths.Resolver{}, path, true)
	if err != nil {
		return nil, err
	}

	return entry.Open()
}

// Open opens the regular file of an entry for reading. The caller closes it. A file replaced since the look
// is ErrReplaced, another kind of file is ErrNotRegular. A foreign entry returns the error of Foreign.
func (e Entry) Open() (*os.File, error) {
	if e.foreign != nil {
		return nil, e.foreign
	}

	return e.OpenForeign()
}

// OpenForeign opens an entry like Open, also a foreign one. The caller compares the content and does not show
// it.
func (e Entry) OpenForeign() (*os.File, error) {
	f, _, _, err := e.open()

	return f, err
}

// OpenTrusted opens a file like Open and returns its author. It returns paths.ErrUntrusted like ReadTrusted.
func OpenTrusted(path string, author paths.Author) (*os.File, paths.Author, error) {
	entry, err := look(&paths.Resolver{}, path, true)
	if err != nil {
		return nil, paths.Author{}, err
	}

	return entry.openTrusted(author)
}

func (e Entry) openTrusted(author paths.Author) (*os.File, paths.Author, error) {
	f, st, in, err := e.open()
	if err != nil {
		return nil, paths.Author{}, err
	}
	if err := errors.Join(author.Check(e.Path, st, in), e.foreign); err != nil {
		return nil, paths.Author{}, errors.Join(err, f.Close())
	}

	return f, paths.AuthorOf(st, in), nil
}

// open opens an entry, foreign or not. It returns the attributes of the file and the party of its directory.
func (e Entry) open() (f *os.File, st *unix.Stat_t, in paths.Party, err error) {
	d, st, in, err := e.descriptor()
	if err != nil {
		return nil, nil, in, err
	}

	return d.file(), st, in, nil
}

// descriptor opens the file for short use.
func (e Entry) descriptor() (d descriptor, st *unix.Stat_t, in paths.Party, err error) {
	switch e.Kind {
	case File:
	case Absent:
		return d, nil, in, &fs.PathError{Op: "open", Path: e.Path, Err: unix.ENOENT}
	default:
		return d, nil, in, fmt.Errorf("%s %w", e.Path, ErrNotRegular)
	}
	at, err := e.place()
	if err != nil {
		return d, nil, in, err
	}
	defer at.Dir.Close()
	d, err = openAt(at.Dir.Fd(), at.Name, e.Path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ELOOP) {
		err = fmt.Errorf("%s %w", e.Path, ErrReplaced)
	}
	if err != nil {
		return d, nil, in, err
	}
	if st, err = d.stat(); err == nil {
		err = e.check(st, at.Dir)
	}
	if err != nil {
		_ = d.Close()
		return d, nil, in, err
	}

	return d, st, at.Dir.Party(), nil
}

// place opens the current directory of the entry.
func (e Entry) place() (*paths.Place, error) {
	if e.followed {
		return e.from.Find(e.Path, true)
	}

	return e.from.Parent(e.Path)
}

// check returns an error unless an open file is the file of the entry. It rejects a hard link to a secret in
// a directory where users other than root and the running user create names.
func (e Entry) check(st *unix.Stat_t, dir *paths.Dir) error {
	switch {
	case idOf(st) != e.id || kindOf(st) != File:
		return fmt.Errorf("%s %w", e.Path, ErrReplaced)
	case st.Nlink > 1 && dir.TakesNames(st.Uid):
		return fmt.Errorf("%w: %s belongs to %s and has %d names, one of them in %s, where others make names: remove it there, or the other names", paths.ErrUnsafe, e.Path, paths.OwnerName(st.Uid), st.Nlink, dir.Path())
	case e.foreign == nil:
		return dir.Keeps(e.Path, st)
	default:
		return nil
	}
}

func openAt(dir int, name, full string, flags int, mode uint32) (descriptor, error) {
	fd := -1
	err := paths.Retry(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return descriptor{}, &fs.PathError{Op: "open", Path: full, Err: err}
	}

	return descriptor{fd, full}, nil
}

func fstat(f *os.File) (*unix.Stat_t, error) { return descriptor{int(f.Fd()), f.Name()}.stat() }

// Read returns the content of a regular file of at most max bytes. A longer file wraps ErrTooLarge, another
// kind of file ErrNotRegular. Read follows links and does not wait for a fifo.
func Read(path string, max int64) ([]byte, error) {
	entry, err := look(&paths.Resolver{}, path, true)
	if err != nil {
		return nil, err
	}

	return entry.Read(max)
}

// ReadTrusted is Read for a file that controls muster. It returns paths.ErrUntrusted, with the remedy, for a
// file that users other than root, the running user and the author may change.
func ReadTrusted(path string, max int64, author paths.Author) ([]byte, error) {
	entry, err := look(&paths.Resolver{}, path, true)
	if err != nil {
		return nil, err
	}

	return entry.ReadTrusted(max, author)
}

// Read returns the content of the file of an entry like the function Read. It also returns the errors of
// Open.
func (e Entry) Read(max int64) ([]byte, error) {
	if e.foreign != nil {
		return nil, e.foreign
	}
	f, _, _, err := e.descriptor()
	if err != nil {
		return nil, err
	}

	return e.read(f, max)
}

// ReadTrusted is Read with the errors of the function ReadTrusted.
func (e Entry) ReadTrusted(max int64, author paths.Author) ([]byte, error) {
	f, _, err := e.openTrusted(author)
	if err != nil {
		return nil, err
	}

	return e.read(f, max)
}

func (e Entry) read(f io.ReadCloser, max int64) ([]byte, error) {
	defer f.Close()
	if e.Size > max {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d are read", e.Path, ErrTooLarge, e.Size, max)
	}
	// The file may grow during the read, and files of /proc have no size.
	content, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > max {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", e.Path, ErrTooLarge, max)
	}

	return content, nil
}

// ReadSecret is ReadTrusted of a file that only its owner may read. The error names the remedy.
func ReadSecret(path string, max int64) ([]byte, error) {
	text, err := ReadTrusted(path, max, paths.Author{})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so others may read it: chmod 600 %s", path, info.Mode().Perm(), path)
	}

	return text, nil
}

// descriptor is an open file for short use: an os.File needs two more system calls. The owner closes it.
type descriptor struct {
	fd   int
	path string
}

// Read implements io.Reader.
func (d descriptor) Read(p []byte) (n int, err error) {
	err = paths.Retry(func() (err error) {
		n, err = unix.Read(d.fd, p)
		return err
	})
	switch {
	case err != nil:
		return 0, &fs.PathError{Op: "read", Path: d.path, Err: err}
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	default:
		return n, nil
	}
}

// position returns the number of bytes read.
func (d descriptor) position() int64 {
	at, _ := unix.Seek(d.fd, 0, io.SeekCurrent)

	return at
}

func (d descriptor) stat() (*unix.Stat_t, error) {
	var st unix.Stat_t
	if err := paths.Retry(func() error { return unix.Fstat(d.fd, &st) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: d.path, Err: err}
	}

	return &st, nil
}

// Close closes the file.
func (d descriptor) Close() error { return unix.Close(d.fd) }

// file returns an os.File that the caller closes instead.
func (d descriptor) file() *os.File { return os.NewFile(uintptr(d.fd), d.path) }
