package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// stateFormat is the format of the state directory that this version reads and
// writes; the file format in it has it as text. A change of format brings its
// conversion.
const stateFormat = "1"

// ErrStateFormat is a state directory of a format that this version does not know.
var ErrStateFormat = errors.New("unknown format of the state directory")

// OpenState checks the format of the state directory before anything in it is
// read or written. With write, a directory without a format is made and gets the
// one of this version. The error wraps ErrStateFormat, and leaves the directory
// untouched; so does ErrUntrusted, for one that others may change. Without a state
// directory it does nothing.
func (d *Disk) OpenState(write bool) error {
	if d.stateDir == "" {
		return nil
	}
	if err := checkTrusted(d.stateDir); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	path := filepath.Join(d.stateDir, "format")
	text, err := Read(path, 1<<10)
	switch format := strings.TrimSpace(string(text)); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		if !write && errors.Is(err, fs.ErrPermission) {
			return nil // whoever may not read it reads nothing else either
		}
		return fmt.Errorf("format of the state directory: %w", err)
	case format == stateFormat:
		return nil
	case format != "":
		return fmt.Errorf("%w: %s holds %q, this version knows %s: use the version of muster that wrote it, or another directory (--state-dir)", ErrStateFormat, path, format, stateFormat)
	case !write:
		return nil
	}
	if err := os.MkdirAll(d.stateDir, 0o700); err != nil {
		return fmt.Errorf("could not make state directory: %w", err)
	}

	// A kill in between leaves an empty file, which counts as none.
	return os.WriteFile(path, []byte(stateFormat+"\n"), 0o600)
}
