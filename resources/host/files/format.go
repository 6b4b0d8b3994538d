package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/trust"
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
// untouched; so does trust.ErrUntrusted, for one that others may change, and
// paths.ErrUnsafe. Without a state directory it does nothing.
func (d *Disk) OpenState(write bool) error {
	if d.stateDir == "" {
		return nil
	}
	if _, err := checkState(d.stateDir); err != nil {
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
	if err := MakeState(d.stateDir); err != nil {
		return err
	}

	// A kill in between leaves an empty file, which counts as none.
	return os.WriteFile(path, []byte(stateFormat+"\n"), 0o600)
}

// MakeState makes a state directory and its parents when missing. One that
// others than root and the running user may change wraps trust.ErrUntrusted, one that
// they could exchange paths.ErrUnsafe; nothing is made then. So what is done
// below it by path is done in it.
func MakeState(dir string) error {
	exists, err := checkState(dir)
	if err == nil && !exists {
		err = makeState(dir)
		if err == nil {
			_, err = checkState(dir)
		}
	}
	if err != nil {
		return fmt.Errorf("could not make state directory: %w", err)
	}

	return nil
}

func makeState(path string) error {
	return new(Disk).inParent(path, func(parent *paths.Dir, name string) error {
		if err := parent.CheckOwn(); err != nil {
			return err
		}
		dir, _, err := makeIn(parent, name, OwnAttrs(0o700))
		if err != nil {
			return err
		}
		return dir.Close()
	})
}

// checkState checks a state directory, or where it would be made. A walk reaches
// directories of root and the running user only through such ones.
func checkState(path string) (exists bool, err error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return false, err
	}
	for at := full; ; at = filepath.Dir(at) {
		dir, err := paths.OpenDir(at)
		switch {
		case paths.IsAbsent(err):
			continue
		case err != nil:
			return false, err
		case at != full:
			return false, errors.Join(dir.CheckOwn(), dir.Close())
		}
		var st unix.Stat_t
		if err = dir.Stat(".", &st); err == nil {
			err = trust.Author{}.Check(path, &st, trust.Trusted)
		}
		return true, errors.Join(err, dir.Close())
	}
}
