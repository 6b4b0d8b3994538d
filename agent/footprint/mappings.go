package footprint

import (
	"fmt"
	"strings"
)

// mapping is a part of the address space.
type mapping struct{ from, to uintptr }

// reloadable returns the mappings of a program, from /proc/self/smaps, that the kernel can
// read again from its file: private ones that cannot be written, without a page that differs
// from the file. The loader of a position independent program, and a debugger,
// write to pages that cannot be written later; what they wrote would be lost.
func reloadable(smaps, program string) []mapping {
	var out []mapping
	var at mapping
	// same are the fields that say that a page differs and are 0 in this mapping.
	candidate, same := false, 0
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		if m, perms, path, ok := header(line, fields); ok {
			at, same = m, 0
			candidate = path == program && len(perms) == 4 && perms[0] == 'r' && perms[1] == '-' && perms[3] == 'p'
		}
		if !candidate || len(fields) < 2 || fields[1] != "0" || fields[0] != "Anonymous:" && fields[0] != "Swap:" {
			continue
		}
		if same++; same == 2 {
			out = append(out, at)
		}
	}

	return out
}

// header reads the line that begins a mapping.
func header(line string, fields []string) (m mapping, perms, path string, ok bool) {
	if n, _ := fmt.Sscanf(line, "%x-%x ", &m.from, &m.to); n != 2 || len(fields) < 5 {
		return mapping{}, "", "", false
	}
	if len(fields) > 5 {
		path = strings.TrimSpace(line[strings.Index(line, fields[5]):])
	}

	return m, fields[1], path, true
}
