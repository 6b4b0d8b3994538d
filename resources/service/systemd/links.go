package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/service"
)

// etcUnits is the directory of the administrator's units and links.
const etcUnits = "etc/systemd/system"

// links are the units that links in the directories of the administrator enable or mask.
type links struct {
	enabling, masked map[string]struct{}
	// made are the links in /etc/systemd/system that enable each unit, relative to that directory.
	made map[string][]string
}

// enablingLinks reads the links. It skips unreadable links: the links only show where the memory of
// systemd may be outdated.
func enablingLinks(root string) links {
	out := links{enabling: map[string]struct{}{}, masked: map[string]struct{}{}, made: map[string][]string{}}
	for _, dir := range []string{etcUnits, "run/systemd/system"} {
		note := func(unit, link string) {
			out.enabling[unit] = struct{}{}
			if dir == etcUnits {
				out.made[unit] = append(out.made[unit], link)
			}
		}
		at := filepath.Join(root, dir)
		for _, entry := range entries(at) {
			switch path := filepath.Join(at, entry.Name()); {
			case entry.IsDir() && wants(entry.Name()):
				for _, link := range entries(path) {
					note(link.Name(), filepath.Join(entry.Name(), link.Name()))
				}
			case entry.Type()&os.ModeSymlink != 0:
				out.add(path, note)
			}
		}
	}
	// Packages mask units too.
	for _, dir := range []string{"usr/lib/systemd/system", "lib/systemd/system"} {
		dir = filepath.Join(root, dir)
		for _, entry := range entries(dir) {
			if entry.Type()&os.ModeSymlink == 0 {
				continue
			}
			if target, err := os.Readlink(filepath.Join(dir, entry.Name())); err == nil && target == os.DevNull {
				out.masked[entry.Name()] = struct{}{}
			}
		}
	}

	return out
}

// add records a link beside the units. A link to /dev/null masks a unit, and a link of another name is an
// alias of an enabled unit.
func (l links) add(path string, note func(unit, link string)) {
	target, err := os.Readlink(path)
	switch unit := filepath.Base(target); {
	case err != nil:
	case target == os.DevNull:
		l.masked[filepath.Base(path)] = struct{}{}
	case unit != filepath.Base(path):
		note(unit, filepath.Base(path))
	}
}

func wants(directory string) bool {
	return strings.HasSuffix(directory, ".wants") || strings.HasSuffix(directory, ".requires") || strings.HasSuffix(directory, ".upholds")
}

func entries(dir string) []os.DirEntry {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}

	return list
}

// unitDirs returns when each unit directory last changed.
func unitDirs(root string) map[string]time.Time {
	out := map[string]time.Time{}
	for _, dir := range append(files.UnitDirs(), "/etc/init.d") {
		dir = filepath.Join(root, dir)
		if info, err := os.Stat(dir); err == nil {
			out[dir] = info.ModTime()
		}
		for _, entry := range entries(dir) {
			if info, err := entry.Info(); err == nil && entry.IsDir() {
				out[filepath.Join(dir, entry.Name())] = info.ModTime()
			}
		}
	}

	return out
}

// hasScript reports whether a service has an init script.
func hasScript(root, name string) bool {
	_, err := os.Stat(filepath.Join(root, "etc/init.d", strings.TrimSuffix(service.UnitName(name), ".service")))

	return err == nil
}
