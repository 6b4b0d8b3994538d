package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/musterfleet/muster/resources/host/paths"
)

// The suffixes of drop-ins and of their directories.
const (
	dropInSuffix    = ".conf"
	dropInDirSuffix = ".d"
)

// UnitDirs returns the unit directories of the system, highest precedence first.
func UnitDirs() []string {
	return []string{
		"/etc/systemd/system.control", "/run/systemd/system.control", "/etc/systemd/system", "/etc/systemd/system.attached", "/run/systemd/system", "/run/systemd/system.attached",
		"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
	}
}

// unitSuffixes returns the suffixes of unit files.
func unitSuffixes() []string {
	return []string{".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"}
}

// IsUnitFile reports whether systemd needs a daemon-reload after a change at path: a unit file,
// a drop-in, or a directory of these. systemd may find the file by a link.
func IsUnitFile(path string) bool { return isUnitPath(path) || isLinkedUnit(path, UnitDirs()) }

// isLinkedUnit reports whether systemd reads the file at path by a link: a unit file or drop-in
// that is a link, a drop-in directory that is one, or a link above these.
func isLinkedUnit(path string, dirs []string) bool {
	suffix, links := filepath.Ext(path), paths.Links{}
	if suffix != dropInSuffix && !slices.Contains(unitSuffixes(), suffix) {
		return false
	}
	path, _ = links.Resolve(filepath.Clean(path))
	leads := func(at, to string) bool {
		_, target := links.Resolve(at)
		return target == to
	}
	for _, dir := range dirs {
		_, real := links.Resolve(dir)
		if rel, isBelow := strings.CutPrefix(path, real+"/"); isBelow && isUnitBelow(rel) {
			return true
		}
		for _, entry := range list(dir) {
			at := filepath.Join(dir, entry.Name())
			switch isLink, isDropInDir := entry.Type()&fs.ModeSymlink != 0, strings.HasSuffix(at, dropInDirSuffix); {
			case isLink && isDropInDir && suffix == dropInSuffix && leads(at, filepath.Dir(path)):
				return true
			case isLink && isUnitBelow(entry.Name()) && leads(at, path):
				return true
			case !isLink && isDropInDir && slices.ContainsFunc(list(at), func(e fs.DirEntry) bool {
				return e.Type()&fs.ModeSymlink != 0 && leads(filepath.Join(at, e.Name()), path)
			}):
				return true
			}
		}
	}

	return false
}

// list returns the entries of a directory, none if it cannot be read.
func list(dir string) []fs.DirEntry {
	entries, _ := os.ReadDir(dir)

	return entries
}

// isUnitPath reports whether a path names a unit file, a drop-in, or a directory of these.
func isUnitPath(path string) bool {
	path = filepath.Clean(path)

	return slices.ContainsFunc(UnitDirs(), func(dir string) bool {
		rel, isBelow := strings.CutPrefix(path, dir+"/")
		return path == dir || isBelow && isUnitBelow(rel)
	})
}

// isUnitBelow reports whether a path relative to a unit directory names a unit file, a drop-in,
// or a directory of drop-ins.
func isUnitBelow(rel string) bool {
	dir, name, isDeeper := strings.Cut(rel, "/")
	if isDeeper {
		return strings.HasSuffix(dir, dropInDirSuffix) && !strings.Contains(name, "/") && filepath.Ext(name) == dropInSuffix
	}

	return strings.HasSuffix(rel, dropInDirSuffix) || slices.Contains(unitSuffixes(), filepath.Ext(rel))
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
