package paths

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Mount is a mounted file system. Mounts are comparable.
type Mount struct {
	// MountID is the number of the mount. The kernel reuses numbers after an unmount. Parent is the ID of the
	// mount that contains the mount point.
	ID, Parent string
	// Device is the major and minor number of the file system. Root is the mounted path in it.
	Device, Root string
	// Path is the mount point.
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

// ParseMounts parses the text of /proc/self/mountinfo. It skips unknown lines.
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

// unescapeMount returns a text with its octal escapes decoded. The kernel escapes a space as \040.
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

// parseOctal decodes the escape at the beginning of a text, such as \040.
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

// ChangedMounts returns the sorted, distinct paths of mounts that differ between two states.
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

// IsWithin reports whether a clean path is a clean directory or below it.
func IsWithin(path, dir string) bool {
	if dir == "/" || path == dir {
		return true
	}

	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}
