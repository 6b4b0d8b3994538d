package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

// defaultTarget is the link of systemctl set-default. It enables nothing.
const defaultTarget = "default.target"

// maxUnitFile limits the size of a unit file in bytes, maxLinks the length of a chain of links to it.
const (
	maxUnitFile = 1 << 20
	maxLinks    = 16
)

// differingLinks returns the links that enable a unit and the links of its [Install] section.
// Both are nil if they are the same or cannot be compared. A unit without an [Install] section may
// have links of an administrator: they differ only if muster made one, and not for linked units,
// which reenable cannot turn into static units.
func (r *reader) differingLinks(env resource.Env, unit string, l links) (made, wanted []string) {
	i, ok := readInstall(r.root, unit)
	if !ok {
		return nil, nil
	}
	made, wanted = i.comparable(l.made[unit]), i.comparable(i.links)
	if slices.Equal(made, wanted) || len(wanted) == 0 && (!wasEnabled(env, unit, made) || len(linkedUnits(r.root, []string{unit})) > 0) {
		return nil, nil
	}

	return made, append([]string{}, wanted...)
}

// install is the [Install] section of a unit.
type install struct {
	unit, prefix, instance string
	// links are paths relative to /etc/systemd/system.
	links []string
}

// comparable returns the sorted links without the ones that depend on the version of systemd:
// aliases of instances, and UpheldBy=.
func (i install) comparable(links []string) []string {
	out := slices.DeleteFunc(slices.Clone(links), func(link string) bool {
		isAlias := !strings.Contains(link, "/")
		return link == defaultTarget || strings.Contains(link, ".upholds/") || isAlias && i.instance != ""
	})
	slices.Sort(out)

	return slices.Compact(out)
}

// readInstall reads the [Install] sections of a unit file and its drop-ins. ok is false if there
// is no unit file, or if only systemd can resolve a value.
func readInstall(root, unit string) (i install, ok bool) {
	i.unit = unit
	bare := strings.TrimSuffix(unit, filepath.Ext(unit))
	prefix, instance, _ := strings.Cut(bare, "@")
	i.prefix, i.instance = prefix, instance
	text, names, ok := unitFile(root, unit)
	if !ok {
		return i, false
	}
	values := map[string][]string{}
	parseInstall(text, values)
	for _, text := range dropIns(root, names) {
		parseInstall(text, values)
	}
	for key, suffix := range map[string]string{"WantedBy": ".wants/", "RequiredBy": ".requires/", "UpheldBy": ".upholds/"} {
		for _, value := range values[key] {
			target, known := i.expand(value)
			if !known {
				return i, false
			}
			i.links = append(i.links, target+suffix+unit)
		}
	}
	for _, value := range values["Alias"] {
		alias, known := i.expand(value)
		if !known {
			return i, false
		}
		if alias != unit {
			i.links = append(i.links, alias)
		}
	}

	return i, true
}

// expand resolves the specifiers of a name. known is false for a specifier that depends on the
// machine.
func (i install) expand(name string) (expanded string, known bool) {
	var b strings.Builder
	for rest := name; ; {
		before, after, found := strings.Cut(rest, "%")
		b.WriteString(before)
		if !found {
			break
		}
		if after == "" {
			return "", false
		}
		switch after[0] {
		case '%':
			b.WriteByte('%')
		case 'n':
			b.WriteString(i.unit)
		case 'N':
			b.WriteString(strings.TrimSuffix(i.unit, filepath.Ext(i.unit)))
		case 'p':
			b.WriteString(i.prefix)
		case 'i':
			b.WriteString(i.instance)
		case 'j':
			b.WriteString(i.prefix[strings.LastIndexByte(i.prefix, '-')+1:])
		default:
			return "", false
		}
		rest = after[1:]
	}
	expanded = b.String()
	if at := strings.Index(expanded, "@."); at >= 0 && i.instance != "" {
		expanded = expanded[:at+1] + i.instance + expanded[at+1:]
	}

	return expanded, true
}

// parseInstall adds the values of the [Install] section of a unit file. An empty value removes
// the earlier values of its key.
func parseInstall(text string, values map[string][]string) {
	section := ""
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.ContainsAny(line[:1], "#;"):
			continue
		case strings.HasPrefix(line, "["):
			section = line
			continue
		case section != "[Install]":
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		words := strings.Fields(strings.ReplaceAll(value, `"`, ""))
		if len(words) == 0 {
			delete(values, key)
		}
		values[key] = append(values[key], words...)
	}
}

// unitFile returns the text of the file of a unit, and the names that its file may have: an
// instance may have the file of its template.
func unitFile(root, unit string) (text string, names []string, found bool) {
	suffix := filepath.Ext(unit)
	names = []string{unit}
	if prefix, _, isInstance := strings.Cut(strings.TrimSuffix(unit, suffix), "@"); isInstance {
		names = append(names, prefix+"@"+suffix)
	}
	for _, name := range names {
		if text, found = findUnit(root, name); found {
			break
		}
	}

	return text, names, found
}

func findUnit(root, name string) (text string, found bool) {
	for _, dir := range files.UnitDirs() {
		text, err := readBelow(root, filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return text, err == nil
	}

	return "", false
}

// dropIns returns the texts of the drop-ins of a unit, sorted by file name. Of several files with
// one name, the first directory wins.
func dropIns(root string, names []string) []string {
	paths := map[string]string{}
	for _, name := range names {
		for _, dir := range files.UnitDirs() {
			at := filepath.Join(dir, name+".d")
			for _, entry := range entries(filepath.Join(root, at)) {
				if base := entry.Name(); strings.HasSuffix(base, ".conf") && paths[base] == "" {
					paths[base] = filepath.Join(at, base)
				}
			}
		}
	}
	var out []string
	for _, base := range slices.Sorted(maps.Keys(paths)) {
		if text, err := readBelow(root, paths[base]); err == nil {
			out = append(out, text)
		}
	}

	return out
}

// readBelow reads a file below root and follows links below root.
func readBelow(root, path string) (string, error) {
	for range maxLinks {
		target, err := os.Readlink(filepath.Join(root, path))
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	text, err := files.Read(filepath.Join(root, path), maxUnitFile)

	return string(text), err
}

// enableObstacle returns an error if a unit that systemd knows only by a link cannot be enabled,
// because its file has no [Install] section.
func enableObstacle(root, unit string) error {
	linked := linkedUnits(root, []string{unit})
	if i, ok := readInstall(root, unit); !ok || len(i.links) > 0 || len(linked) == 0 {
		return nil
	}
	path := linked[0].target

	return resource.PrerequisiteError{
		Needs: []string{resource.PathNeed(path)},
		Err:   fmt.Errorf("its unit file %s has no [Install] section: leave enable unset", path),
	}
}

// maskObstacle returns an error if a service cannot be masked, because its name is an alias of the unit, or
// because the unit file is in the place of the mask. A masked alias is unreadable while its link exists.
func maskObstacle(root, name, unit string) error {
	if alias := service.UnitName(name); alias != unit {
		return fmt.Errorf("%s is an alias of %s: name the service %s instead", alias, unit, unit)
	}
	path := filepath.Join("/", etcUnits, unit)
	target, err := os.Readlink(filepath.Join(root, path))
	if _, statErr := os.Lstat(filepath.Join(root, path)); statErr != nil || err == nil && target == os.DevNull {
		return nil
	}

	return resource.PrerequisiteError{
		Needs: []string{resource.EmptiedNeed(filepath.Dir(path))},
		Err:   fmt.Errorf("its unit file is at %s, where the mask must be: move the file to /usr/local/lib/systemd/system, remove it, or set enable: false instead of masked: true", path),
	}
}

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

func hasScript(root, name string) bool {
	_, err := os.Stat(filepath.Join(root, "etc/init.d", strings.TrimSuffix(service.UnitName(name), ".service")))

	return err == nil
}
