package files

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
)

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
