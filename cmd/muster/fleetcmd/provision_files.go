package fleetcmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterfleet/muster/resources/host/files"
)

// readable is the mode of permission files: nats-server reads them, and they are not secret.
const readable = 0o644

// write writes a document for each user into the directory, and prints the changed paths.
func (c *permissionsCommand) write(users []natsUser, documents [][]byte) error {
	if err := os.Mkdir(c.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--dir: %w", err)
	}
	changed := 0
	for i, u := range users {
		path := filepath.Join(c.dir, u.name+c.extension())
		written, err := replace(path, documents[i])
		if err != nil {
			return fmt.Errorf("wrote %d of %d files: %w", i, len(users), err)
		}
		if !written {
			continue
		}
		changed++
		c.Print.Printf("%s\n", path)
	}
	if err := syncDir(c.dir); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	c.Print.Remark("%d written, %d up to date", changed, len(users)-changed)

	return nil
}

// syncDir syncs a directory, because a rename alone does not survive a crash.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}

	return errors.Join(dir.Sync(), dir.Close())
}

// extension returns the file name extension for the output format.
func (c *permissionsCommand) extension() string {
	switch {
	case c.YAML:
		return ".yaml"
	case c.IsDocument(), c.jwt:
		return ".json"
	default:
		return ".conf"
	}
}

// replace replaces a file atomically, and reports whether its content changed.
func replace(path string, content []byte) (written bool, err error) {
	if now, unread := files.Read(path, int64(len(content))); unread == nil && bytes.Equal(now, content) {
		return false, nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".muster-*")
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(readable), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}

	return err == nil, err
}
