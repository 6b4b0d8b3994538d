package files

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// unitDirs returns the unit directories of the system.
func unitDirs() []string {
	return []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}
}

// unitSuffixes returns the suffixes of unit files.
func unitSuffixes() []string {
	return []string{".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"}
}

// IsUnitFile reports whether systemd reads the file at path only after a daemon-reload: a unit
// file, a drop-in, or a directory of either.
func IsUnitFile(path string) bool {
	path = filepath.Clean(path)
	dir, name := filepath.Dir(path), filepath.Base(path)
	switch {
	case slices.Contains(unitDirs(), path):
		return true
	case slices.Contains(unitDirs(), dir):
		return strings.HasSuffix(name, ".d") || slices.Contains(unitSuffixes(), filepath.Ext(name))
	default:
		return filepath.Ext(name) == ".conf" && strings.HasSuffix(dir, ".d") && slices.Contains(unitDirs(), filepath.Dir(dir))
	}
}

// UnitFiles counts the changes of unit files, and which of them systemd has read since. It is
// safe for concurrent use. The zero value has none.
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

// Changes returns the number of changes so far. Take it before a daemon-reload, for NoteRead.
func (u *UnitFiles) Changes() int {
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.changed
}

// NoteRead records that systemd has read the first changes.
func (u *UnitFiles) NoteRead(changes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.read = max(u.read, changes)
}

// ArePending reports whether unit files changed that systemd has not read.
func (u *UnitFiles) ArePending() bool {
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.read < u.changed
}
