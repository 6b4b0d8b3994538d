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

func unitSuffixes() []string {
	return []string{".service", ".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"}
}

// IsUnitFile reports whether systemd needs a daemon-reload after a change at any of the paths: a unit
// file, a drop-in, or a directory of these. systemd may find the file by a link.
func IsUnitFile(paths ...string) bool {
	return slices.ContainsFunc(paths, isUnitPath) || areLinkedUnits(paths, UnitDirs())
}

// areLinkedUnits reports whether systemd reads one of the files by a link. It reads the unit
// directories once.
func areLinkedUnits(all, dirs []string) bool {
	all = slices.DeleteFunc(slices.Clone(all), func(path string) bool { return !mayBeLinked(path) })
	if len(all) == 0 {
		return false
	}

	return slices.ContainsFunc(all, readUnitLinks(dirs).lead)
}

// mayBeLinked reports whether a path has the suffix of a unit file or a drop-in.
func mayBeLinked(path string) bool {
	suffix := filepath.Ext(path)

	return suffix == dropInSuffix || slices.Contains(unitSuffixes(), suffix)
}

// unitLinks are the files that systemd reads by links: a unit file or drop-in that is a link, a
// drop-in directory that is one, or a link above these.
type unitLinks struct {
	links paths.Links
	// dirs are the unit directories after their links. files and dropInDirs are the targets of links.
	dirs              []string
	files, dropInDirs map[string]bool
}

// readUnitLinks reads the links in the unit directories.
func readUnitLinks(dirs []string) unitLinks {
	u := unitLinks{links: paths.Links{}, files: map[string]bool{}, dropInDirs: map[string]bool{}}
	target := func(at string) string {
		_, target := u.links.Resolve(at)
		return target
	}
	for _, dir := range dirs {
		u.dirs = append(u.dirs, target(dir))
		for _, entry := range list(dir) {
			at := filepath.Join(dir, entry.Name())
			isLink, isDropInDir := entry.Type()&fs.ModeSymlink != 0, strings.HasSuffix(at, dropInDirSuffix)
			if isLink && isDropInDir {
				u.dropInDirs[target(at)] = true
			}
			if isLink && isUnitBelow(entry.Name()) {
				u.files[target(at)] = true
			}
			if isLink || !isDropInDir {
				continue
			}
			for _, e := range list(at) {
				if e.Type()&fs.ModeSymlink != 0 {
					u.files[target(filepath.Join(at, e.Name()))] = true
				}
			}
		}
	}

	return u
}

// lead reports whether systemd reads the file at path by a link.
func (u unitLinks) lead(path string) bool {
	path, _ = u.links.Resolve(filepath.Clean(path))
	if u.files[path] || filepath.Ext(path) == dropInSuffix && u.dropInDirs[filepath.Dir(path)] {
		return true
	}

	return slices.ContainsFunc(u.dirs, func(dir string) bool {
		rel, isBelow := strings.CutPrefix(path, dir+"/")
		return isBelow && isUnitBelow(rel)
	})
}

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
	// checking is locked while the links are read, so that the counts are complete.
	checking      sync.Mutex
	mu            sync.Mutex
	changed, read int
	// unchecked are changed files that systemd may read by links.
	unchecked []string
}

// maxUnchecked is the maximum number of unchecked files.
const maxUnchecked = 1000

// NoteChange counts a change of the file at path if it is a unit file. A user who makes many files
// must not have the links of the unit directories read for each, so they are read for many files.
func (u *UnitFiles) NoteChange(path string) { u.noteChange(path, UnitDirs()) }

func (u *UnitFiles) noteChange(path string, dirs []string) {
	isUnit := isUnitPath(path)
	if !isUnit && !mayBeLinked(path) {
		return
	}
	u.mu.Lock()
	if isUnit {
		u.changed++
	} else {
		u.unchecked = append(u.unchecked, path)
	}
	isFull := len(u.unchecked) >= maxUnchecked
	u.mu.Unlock()
	if isFull {
		u.check(dirs)
	}
}

// check counts the unchecked files that systemd reads by links in the unit directories.
func (u *UnitFiles) check(dirs []string) {
	u.checking.Lock()
	defer u.checking.Unlock()
	u.mu.Lock()
	all := u.unchecked
	u.unchecked = nil
	u.mu.Unlock()
	if !areLinkedUnits(all, dirs) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changed++
}

// Changes returns the number of changes so far. Call it before a daemon-reload, for NoteRead.
func (u *UnitFiles) Changes() int {
	u.check(UnitDirs())
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
	u.check(UnitDirs())
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.read < u.changed
}
