package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// tempPrefix and at least 128 bits of crypto/rand are the name of a temporary file.
const (
	tempPrefix = ".muster-"
	// copyChunk is the number of bytes between two checks of the context.
	copyChunk = 8 << 20
	// copyBuffer is the size of a read.
	copyBuffer = 128 << 10
)

// buffers are reused. The zero value has none.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[copyBuffer]byte {
	if buffer, ok := b.pool.Get().(*[copyBuffer]byte); ok {
		return buffer
	}

	return new([copyBuffer]byte)
}

// Write puts content at path atomically: a temporary file in the same
// directory, content, owner, mode, fsync, special bits, rename, fsync of the directory.
// Anything but a directory at path is replaced, never written through. If the old file belongs
// to the new owner, root or the running user, the new file keeps its SELinux label, access
// control list, capabilities and user attributes. Memory is constant. After an error, path is
// unchanged, unless only the fsync of the directory failed. A missing parent is ErrNoParent.
func (d *Disk) Write(ctx context.Context, path string, content io.Reader, a Attrs) error {
	return d.write(ctx, path, content, a, WriteOptions{})
}

// write is Write with options. It returns errShared if others could replace the file that a check reads.
func (d *Disk) write(ctx context.Context, path string, content io.Reader, a Attrs, o WriteOptions) error {
	// With its last name the old file loses its blocks, which may take long. The open file delays this until
	// the new file is durable.
	old := -1
	defer func() {
		if old >= 0 {
			_ = unix.Close(old)
		}
	}()

	return d.change(path, func(dir *paths.Dir, name string) error {
		if o.Check != nil && dir.TakesNames(0) {
			return errShared
		}
		if err := d.RecordLitter(dir.Path()); err != nil {
			return err
		}
		temp := tempPrefix + rand.Text()
		created, err := openAt(dir.Fd(), temp, tempShown(dir), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return fmt.Errorf("could not create temporary file: %w", err)
		}
		f := created.file()
		err = d.buffers.fill(ctx, f, content, a, func() error {
			old = openOld(dir, name)
			return d.carry(ctx, f, dir, name, old, a, o)
		})
		pinned := -1
		if err == nil && a.Special != 0 {
			// The descriptor does not count as open for writing, which would keep a check from executing the file.
			pinned, err = paths.OpenAt(unix.AT_FDCWD, procPath(int(f.Fd())), unix.O_PATH)
			defer unix.Close(pinned)
		}
		err = errors.Join(err, f.Close())
		if err == nil && o.Check != nil {
			err = unchanged(filepath.Join(dir.Path(), temp), o.Check)
		}
		if err == nil && a.Special != 0 {
			err = chmodPath(pinned, a.Bits())
		}
		if err == nil && o.Replaces != nil {
			err = o.Replaces.remains(dir, name)
		}
		if err == nil {
			err = rename(dir, temp, name)
		}
		if err != nil {
			// If this fails too, the next run removes the file.
			_ = unix.Unlinkat(dir.Fd(), temp, 0)
		}
		return err
	})
}

// tempShown is the path of a temporary file in errors. It is the same each time, so that a repeated error is
// not reported again.
func tempShown(dir *paths.Dir) string { return dir.Path() + "/" + tempPrefix + "*" }

// fill writes the content, owner, extended attributes and mode of a temporary file in this order: no other
// user may read incomplete content, a change of owner clears mode bits and capabilities, and the mode sets
// the mask of an access control list.
func (b *buffers) fill(ctx context.Context, f *os.File, content io.Reader, a Attrs, carry func() error) error {
	if err := DropLists(int(f.Fd())); err != nil {
		return err
	}
	if err := b.copy(ctx, f, content); err != nil {
		return fmt.Errorf("could not write temporary file: %w", err)
	}
	if err := changeOwner(f, a); err != nil {
		return err
	}
	if err := carry(); err != nil {
		return err
	}
	if err := paths.Retry(func() error { return unix.Fchmod(int(f.Fd()), uint32(a.Mode.Perm())) }); err != nil {
		return fmt.Errorf("could not set mode: %w", &os.PathError{Op: "chmod", Path: f.Name(), Err: err})
	}
	if err := paths.Retry(func() error { return unix.Fsync(int(f.Fd())) }); err != nil {
		return fmt.Errorf("could not sync temporary file: %w", &os.PathError{Op: "fsync", Path: f.Name(), Err: err})
	}

	return nil
}

// changeOwner changes the owner only if it differs, because most users may not change it.
func changeOwner(f *os.File, a Attrs) error {
	st, err := fstat(f)
	if err != nil || (st.Uid == a.UID && st.Gid == a.GID) {
		return err
	}
	if err := paths.Retry(func() error { return unix.Fchown(int(f.Fd()), int(a.UID), int(a.GID)) }); err != nil {
		return fmt.Errorf("could not set owner: %w", &os.PathError{Op: "chown", Path: f.Name(), Err: err})
	}

	return nil
}

func rename(dir *paths.Dir, from, to string) error {
	if err := paths.Retry(func() error { return unix.Renameat(dir.Fd(), from, dir.Fd(), to) }); err != nil {
		return fmt.Errorf("could not rename temporary file: %w", busy(dir, to, &os.LinkError{Op: "rename", Old: tempShown(dir), New: dir.Path() + "/" + to, Err: err}))
	}

	return nil
}

// copy copies in chunks, so that a cancelled run ends soon. Where possible the kernel copies from file to
// file.
func (b *buffers) copy(ctx context.Context, f *os.File, content io.Reader) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if small, ok := content.(interface {
		io.WriterTo
		Len() int
	}); ok && small.Len() <= copyChunk {
		_, err := small.WriteTo(f)
		return err
	}
	switch source := content.(type) {
	case *os.File:
		st, err := fstat(source)
		if err != nil {
			return err
		}
		return copyFile(ctx, f, source, st.Size)
	case Sized:
		return copyFile(ctx, f, source.File, source.Size)
	}
	buffer := b.get()
	defer b.pool.Put(buffer)

	return copyChunks(ctx, func() (int64, error) {
		// Hides ReadFrom of the file, which io.Copy would prefer to the buffer.
		return io.CopyBuffer(struct{ io.Writer }{f}, io.LimitReader(content, copyChunk), buffer[:])
	})
}

// Sized is a file as content, up to its earlier size.
type Sized struct {
	*os.File
	Size int64
}

func copyFile(ctx context.Context, to, from *os.File, size int64) error {
	at, err := from.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	left := bound(size) - at

	return copyChunks(ctx, func() (int64, error) {
		n, err := io.CopyN(to, from, min(max(left, 0), copyChunk))
		left -= n
		return n, err
	})
}

func copyChunks(ctx context.Context, copy func() (int64, error)) error {
	for {
		n, err := copy()
		switch {
		case errors.Is(err, io.EOF) || (err == nil && n < copyChunk):
			return nil
		case err != nil:
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
}

// ErrChanged means that the check changed the file.
var ErrChanged = errors.New("the command that checks the file changed it")

// errShared means that other users may replace files in the directory. The sticky bit does not prevent this,
// because the new file may belong to them.
var errShared = errors.New("other users may replace files in the directory")

// WriteOptions change how WriteWith writes a file.
type WriteOptions struct {
	// Check receives the path of the complete new file before it replaces the old one. If Check
	// fails or changes the file, the old file stays. The new file is in the same directory. If
	// other users could replace it there, Check receives a copy with the same name in a private
	// directory instead, and the copy is written.
	Check func(path string) error
	// DropCapabilities removes the capabilities of the file.
	DropCapabilities bool
	// Replaces, unless nil, is the entry that the new file replaces. If the path has changed since, the old
	// file stays and the error is ErrReplaced.
	Replaces *Entry
}

// WriteWith is Write with options.
func (d *Disk) WriteWith(ctx context.Context, path string, content io.Reader, a Attrs, o WriteOptions) error {
	if err := d.write(ctx, path, content, a, o); !errors.Is(err, errShared) {
		return err
	}
	private, err := d.TempDir("validate")
	if err != nil {
		return err
	}
	defer d.RemoveAll(context.WithoutCancel(ctx), private)
	private = filepath.Join(private, filepath.Base(path))
	if err := d.Write(ctx, private, content, a); err != nil {
		return err
	}
	checked, err := Open(private)
	if err != nil {
		return err
	}
	defer checked.Close()
	if err := unchanged(private, o.Check); err != nil {
		return err
	}

	o.Check = nil

	return d.write(ctx, path, checked, a, o)
}

// unchanged calls check on a file, which it must not change.
func unchanged(path string, check func(path string) error) error {
	from := new(paths.Resolver)
	before, err := look(from, path, false)
	if err == nil {
		err = check(path)
	}
	if err != nil {
		return err
	}
	after, err := look(from, path, false)
	if err == nil && after != before {
		err = ErrChanged
	}

	return err
}

// remains returns ErrReplaced unless the entry is still at a name.
func (e Entry) remains(dir *paths.Dir, name string) error {
	var st unix.Stat_t
	now := Entry{}
	switch err := dir.Stat(name, &st); {
	case err == nil:
		now = entryOf(e.Path, &st)
	case !paths.IsAbsent(err):
		return err
	}
	if now.Mark() != e.Mark() {
		return fmt.Errorf("%s %w", e.Path, ErrReplaced)
	}

	return nil
}

// openOld opens the file at a name without following it; the result is negative if there is none.
func openOld(dir *paths.Dir, name string) int {
	fd, err := unix.Openat(dir.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}

	return fd
}

// OwnAttrs returns attributes owned by the running user.
func OwnAttrs(mode fs.FileMode) Attrs {
	return Attrs{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: mode}
}

// WriteRecord writes a value as JSON at path, readable by the running user
// only, and makes its directory when missing. It writes even when ctx has
// ended: a cancelled run must still be remembered.
func (d *Disk) WriteRecord(ctx context.Context, path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := d.MakeDirectory(filepath.Dir(path), OwnAttrs(0o700)); err != nil {
		return err
	}

	return d.Write(context.WithoutCancel(ctx), path, bytes.NewReader(text), OwnAttrs(0o600))
}

// change calls f with the open parent directory of path and the name in it, and
// syncs the directory. A missing parent is ErrNoParent, the root directory
// ErrRefused.
func (d *Disk) change(path string, f func(dir *paths.Dir, name string) error) error {
	at, err := changing(path, d.paths.ReadableParent)
	if err != nil {
		return err
	}
	defer at.Dir.Close()
	if err := f(at.Dir, at.Name); err != nil {
		return err
	}
	d.Units.NoteChange(filepath.Join(at.Dir.Path(), at.Name))

	return at.Dir.Sync()
}

func changing(path string, parent func(string) (*paths.Place, error)) (*paths.Place, error) {
	path = filepath.Clean(path)
	if name := filepath.Base(path); name == "." || name == ".." || name == "/" {
		return nil, fmt.Errorf("%q: %w", path, ErrRefused)
	}
	at, err := parent(path)
	if !paths.IsAbsent(err) {
		return at, err
	}
	dir := filepath.Dir(path)
	if pathErr := new(fs.PathError); errors.As(err, &pathErr) && pathErr.Err == unix.ENOTDIR {
		dir = pathErr.Path
	}

	return nil, noParentError{dir: dir, err: err}
}

// noParentError returns ErrNoParent with the system's error.
type noParentError struct {
	dir string
	err error
}

func (e noParentError) Error() string { return fmt.Sprintf("%s %s", e.dir, ErrNoParent) }

func (e noParentError) Unwrap() []error { return []error{ErrNoParent, e.err} }
