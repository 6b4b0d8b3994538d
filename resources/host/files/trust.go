package files

import (
	"errors"
	"fmt"
	"os"

	"github.com/musterfleet/muster/resources/host/paths"
)

// ErrUntrusted is a file or directory that somebody other than root and the
// running user may change.
var ErrUntrusted = errors.New("untrusted owner or mode")

// ReadTrusted is Read of a file that decides what muster does. It returns
// ErrUntrusted, with the remedy, unless the file belongs to root or the running
// user, and neither its group nor others may write to it; another kind of file is
// ErrNotRegular whoever it belongs to.
func ReadTrusted(path string, max int64) ([]byte, error) {
	entry, err := look(&paths.Resolver{}, path, true)
	if err == nil && entry.Kind == File {
		err = entry.checkTrusted()
	}
	if err != nil {
		return nil, err
	}

	return entry.Read(max)
}

// checkTrusted returns ErrUntrusted for an entry that others may change. A
// missing one is trusted.
func (e Entry) checkTrusted() error {
	if e.Kind == Absent {
		return nil
	}
	remedy, path := "", e.Path
	if e.UID != 0 && e.UID != uint32(os.Geteuid()) {
		remedy = "chown root " + path
	}
	if e.Mode&0o022 != 0 {
		if remedy != "" {
			remedy += " && "
		}
		remedy += "chmod go-w " + path
	}
	if remedy == "" {
		return nil
	}

	return fmt.Errorf("%w: %s belongs to %s and has mode %04o, so others may change what muster does: %s", ErrUntrusted, path, paths.OwnerName(e.UID), e.Mode, remedy)
}
