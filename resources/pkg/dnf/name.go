package dnf

import (
	"fmt"
	"slices"
	"strings"
)

// withoutArchitecture returns a name without the architecture it may end with.
func withoutArchitecture(name string) string {
	if at := strings.LastIndexByte(name, '.'); at >= 0 && slices.Contains(architectures(), name[at+1:]) {
		return name[:at]
	}

	return name
}

// checkVersion refuses a version with an architecture, which dnf accepts and
// rpm lacks.
func checkVersion(name, version string) error {
	at := strings.LastIndexByte(version, '.')
	if at < 0 || !slices.Contains(architectures(), version[at+1:]) {
		return nil
	}

	return fmt.Errorf("a version has no architecture: name the package %s%s, with ensure %s", name, version[at:], version[:at])
}
