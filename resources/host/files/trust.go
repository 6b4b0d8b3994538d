package files

import (
	"errors"
	"fmt"
	"os"
)

// ErrUntrusted is a file or directory that somebody other than root and the
// running user may change.
var ErrUntrusted = errors.New("untrusted owner or mode")

// ReadTrusted is Read of a file that decides what muster does. It returns
// ErrUntrusted, with the remedy, unless the file belongs to root or the running
// user, and neither its group nor others may write to it.
func ReadTrusted(path string, max int64) ([]byte, error) {
	if err := checkTrusted(path); err != nil {
		return nil, err
	}

	return Read(path, max)
}

// checkTrusted returns ErrUntrusted for a path that others may change. A missing
// one is trusted.
func checkTrusted(path string) error {
	entry, err := New(Options{}).Follow(path)
	if err != nil || entry.Kind == Absent {
		return err
	}
	remedy := ""
	if entry.UID != 0 && entry.UID != uint32(os.Geteuid()) {
		remedy = "chown root " + path
	}
	if entry.Mode&0o022 != 0 {
		if remedy != "" {
			remedy += " && "
		}
		remedy += "chmod go-w " + path
	}
	if remedy == "" {
		return nil
	}

	return fmt.Errorf("%w: %s belongs to %s and has mode %04o, so others may change what muster does: %s", ErrUntrusted, path, ownerName(entry.UID), entry.Mode, remedy)
}
