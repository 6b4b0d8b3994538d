package files

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
)

// OwnAttrs gives attributes of what is the running user's.
func OwnAttrs(mode fs.FileMode) Attrs {
	return Attrs{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: mode}
}

// WriteRecord puts a value at path as JSON, for the running user only, as Write
// does; so is the directory it is in, which is made where it is missing. It is
// written although ctx has ended: what must be remembered, must be when a run
// is broken off too.
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
