package files

import (
	"context"
	"errors"
	"io"
	"path/filepath"
)

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
	if err := d.unchanged(private, o.Check); err != nil {
		return err
	}

	return d.write(ctx, path, checked, a, WriteOptions{DropCapabilities: o.DropCapabilities})
}

// unchanged calls check on a file, which it must not change.
func (d *Disk) unchanged(path string, check func(path string) error) error {
	before, err := d.Look(path)
	if err == nil {
		err = check(path)
	}
	if err != nil {
		return err
	}
	after, err := d.Look(path)
	if err == nil && after != before {
		err = ErrChanged
	}

	return err
}
