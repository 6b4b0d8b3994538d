package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// UnitDirs returns the unit directories of the system, highest precedence first.
func UnitDirs() []string {
	return []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}
}

// unitSuffixes returns the suffixes of unit files.
func unitSuffixes() []string {
	return []string{".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"}
}

// IsUnitFile reports whether systemd needs a daemon-reload after a change at path: a unit file,
// a drop-in, or a directory of these.
func IsUnitFile(path string) bool {
	dirs, path := UnitDirs(), filepath.Clean(path)
	dir, name := filepath.Dir(path), filepath.Base(path)
	switch {
	case slices.Contains(dirs, path):
		return true
	case slices.Contains(dirs, dir):
		return strings.HasSuffix(name, ".d") || slices.Contains(unitSuffixes(), filepath.Ext(name))
	default:
		return filepath.Ext(name) == ".conf" && strings.HasSuffix(dir, ".d") && slices.Contains(dirs, filepath.Dir(dir))
	}
}

// IsMask reports whether a link leads to /dev/null, as the mask of a unit does.
func IsMask(path string) bool {
	target, err := os.Readlink(path)

	return err == nil && target == os.DevNull
}

// UnitFiles counts the changes of unit files, and how many of them systemd has read. It is safe
// for concurrent use.
type UnitFiles struct {
	mu            sync.Mutex
	changed, read int
}

// NoteChange counts a change of the file at path if it is a unit file.
func (u *UnitFiles) NoteChange(path string) {
	if !IsUnitFile(path) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changed++
}

// Changes returns the number of changes so far. Call it before a daemon-reload, for NoteRead.
func (u *UnitFiles) Changes() int {
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.changed
}

// NoteRead records that systemd has read this number of changes.
func (u *UnitFiles) NoteRead(changes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.read = max(u.read, changes)
}

// ArePending reports whether systemd has not read all changes.
func (u *UnitFiles) ArePending() bool {
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.read < u.changed
}
