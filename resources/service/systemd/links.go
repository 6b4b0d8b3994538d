package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/service"
)

// links are the units that links in the directories of the administrator
// enable or mask, by their names.
type links struct{ enabling, masked map[string]struct{} }

// enablingLinks reads the links that there are. It is only to find out when
// systemd may remember others, so what cannot be read is left out.
func enablingLinks(root string) links {
	out := links{enabling: map[string]struct{}{}, masked: map[string]struct{}{}}
	for _, dir := range []string{"etc/systemd/system", "run/systemd/system"} {
		dir = filepath.Join(root, dir)
		for _, entry := range entries(dir) {
			switch path := filepath.Join(dir, entry.Name()); {
			case entry.IsDir() && wants(entry.Name()):
				for _, link := range entries(path) {
					out.enabling[link.Name()] = struct{}{}
				}
			case entry.Type()&os.ModeSymlink != 0:
				out.add(path)
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

// add notes what a link beside the units means: a link to nothing masks, one of
// another name is an alias that enabling has made.
func (l links) add(path string) {
	target, err := os.Readlink(path)
	switch unit := filepath.Base(target); {
	case err != nil:
	case target == os.DevNull:
		l.masked[filepath.Base(path)] = struct{}{}
	case unit != filepath.Base(path):
		l.enabling[unit] = struct{}{}
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

// unitDirs returns when each directory that units are read from was last changed.
func unitDirs(root string) map[string]time.Time {
	out := map[string]time.Time{}
	for _, dir := range []string{"etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system", "etc/init.d"} {
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

// hasScript reports whether a service has a script for the time before systemd.
func (p *Provider) hasScript(name string) bool {
	_, err := os.Stat(filepath.Join(p.root, "etc/init.d", strings.TrimSuffix(service.UnitName(name), ".service")))

	return err == nil
}
