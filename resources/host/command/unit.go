package command

import (
	"os"
	"path/filepath"
	"strings"
)

// OwnUnit returns the systemd unit of this process on the machine below root, empty if it has no unit that
// can be managed.
func OwnUnit(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return ""
	}

	return unitOfGroup(string(text))
}

// unitOfGroup returns the system unit of control groups in the format of /proc/self/cgroup, empty if there is
// none that can be managed.
func unitOfGroup(groups string) string {
	for line := range strings.Lines(groups) {
		// Version 2, and the group of version 1 that systemd uses.
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		if controllers != "" && controllers != "name=systemd" {
			continue
		}
		for name := range strings.SplitSeq(path, "/") {
			// systemd escapes names that have a meaning for control groups.
			if name = strings.TrimPrefix(name, "_"); strings.HasSuffix(name, ".service") {
				return name
			}
		}
	}

	return ""
}
