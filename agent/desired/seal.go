package desired

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/resources/host/paths"
)

// sealName is the file in an unpacked bundle that lists its content.
const sealName = ".muster-bundle"

// seal writes the content of a bundle, one line per entry, so that IsIntact detects missing and changed
// entries.
func seal(ctx context.Context, dir string) error {
	path := filepath.Join(dir, sealName)
	// The bundle may contain this name, even as a link.
	if err := paths.RemoveTree(ctx, path); err != nil {
		return err
	}
	var lines bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		line, err := describe(dir, name)
		fmt.Fprintln(&lines, line)
		return err
	})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(lines.Bytes())

	return errors.Join(err, f.Close())
}

// IsIntact reports whether all unpacked entries of a bundle are unchanged. Additional files do not matter.
func IsIntact(dir string) bool {
	sealed, err := os.ReadFile(filepath.Join(dir, sealName))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(sealed)) {
		line = strings.TrimSuffix(line, "\n")
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			return false
		}
		name, err := strconv.Unquote(quoted)
		if err != nil {
			return false
		}
		if now, err := describe(dir, name); err != nil || now != line {
			return false
		}
	}

	return len(sealed) > 0
}

// describe returns the line of an entry. It changes if the entry is replaced, written or its mode changes.
func describe(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%q %o", name, uint32(info.Mode()))
	switch {
	case info.Mode().IsRegular():
		line += fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return line + fmt.Sprintf(" %q", target), err
	}

	return line, nil
}
