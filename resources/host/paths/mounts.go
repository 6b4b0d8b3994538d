package paths

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Mount is what is mounted somewhere. Mounts can be compared.
type Mount struct {
	// MountID is the number of the mount. The kernel reuses the numbers of unmounted ones. Parent is
	// the ID of the mount that contains the mount point.
	ID, Parent string
	// Device is major and minor number of the file system, and Root the path in it.
	Device, Root string
	// Path is where it is mounted.
	Path string
}

// The fields of a line of mountinfo.
const (
	fieldID     = 0
	fieldParent = 1
	fieldDevice = 2
	fieldRoot   = 3
	fieldPath   = 4
)

// ParseMounts reads the text of /proc/self/mountinfo. Lines that it does not know are left out.
func ParseMounts(text []byte) map[Mount]struct{} {
	out := map[Mount]struct{}{}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) <= fieldPath || !strings.HasPrefix(fields[fieldPath], "/") {
			continue
		}
		m := Mount{fields[fieldID], fields[fieldParent], fields[fieldDevice], unescapeMount(fields[fieldRoot]), unescapeMount(fields[fieldPath])}
		out[m] = struct{}{}
	}

	return out
}

// unescapeMount returns a text with its octal escapes resolved: the kernel writes a space as \040.
func unescapeMount(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if value, is := parseOctal(text[i:]); is {
			out.WriteByte(value)
			i += 3
			continue
		}
		out.WriteByte(text[i])
	}

	return out.String()
}

// parseOctal returns the byte that a text begins with as an escape, such as \040.
func parseOctal(text string) (value byte, is bool) {
	if len(text) < 4 || text[0] != '\\' || text[1] > '3' {
		return 0, false
	}
	for _, digit := range []byte(text[1:4]) {
		if digit < '0' || digit > '7' {
			return 0, false
		}
		value = value<<3 | (digit - '0')
	}

	return value, true
}

// ChangedMounts returns the paths at which something was mounted or unmounted between two states,
// each once, in order.
func ChangedMounts(before, after map[Mount]struct{}) []string {
	paths := map[string]struct{}{}
	for m := range before {
		if _, still := after[m]; !still {
			paths[m.Path] = struct{}{}
		}
	}
	for m := range after {
		if _, had := before[m]; !had {
			paths[m.Path] = struct{}{}
		}
	}

	return slices.Sorted(maps.Keys(paths))
}

// IsWithin reports whether a path is a directory, or below it. Both are clean.
func IsWithin(path, dir string) bool {
	if dir == "/" || path == dir {
		return true
	}

	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}
