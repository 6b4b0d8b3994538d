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

// sealName is the file in an unpacked bundle that has what was unpacked.
const sealName = ".muster-bundle"

// seal records what is in a bundle, a line for each entry, so that IsIntact sees when
// one is missing or another.
func seal(ctx context.Context, dir string) error {
	path := filepath.Join(dir, sealName)
	// It may be in the bundle, also as a link to elsewhere.
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

// IsIntact reports whether a bundle has all that was unpacked, as it was. What a command
// adds to it is no damage.
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

// describe returns the line of an entry: what changes when somebody replaces, writes to
// or chmods it.
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
