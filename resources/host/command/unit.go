package command

import (
	"os"
	"path/filepath"
	"strings"
)

// OwnUnit returns the unit of systemd that this process is in, on the machine with a root;
// empty for none that may be managed.
func OwnUnit(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return ""
	}

	return unitOfGroup(string(text))
}

// unitOfGroup returns the unit of the system that control groups are of, those of
// /proc/self/cgroup; empty where they are of none that may be managed.
func unitOfGroup(groups string) string {
	for line := range strings.Lines(groups) {
		// Of version 2, and the one of version 1 that systemd keeps.
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		if controllers != "" && controllers != "name=systemd" {
			continue
		}
		for name := range strings.SplitSeq(path, "/") {
			// systemd puts it before names that control groups have a meaning for.
			if name = strings.TrimPrefix(name, "_"); strings.HasSuffix(name, ".service") {
				return name
			}
		}
	}

	return ""
}
