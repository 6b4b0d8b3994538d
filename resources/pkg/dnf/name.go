package dnf

import (
	"fmt"
	"slices"
	"strings"
)

// withoutArchitecture returns a name or a version without the architecture at its end, if there is one.
func withoutArchitecture(name string) string {
	if at := strings.LastIndexByte(name, '.'); at >= 0 && slices.Contains(architectures(), name[at+1:]) {
		return name[:at]
	}

	return name
}

// checkVersion refuses a version with an architecture, which dnf accepts and
// rpm lacks.
func checkVersion(name, version string) error {
	bare := withoutArchitecture(version)
	if bare == version {
		return nil
	}

	return fmt.Errorf("a version has no architecture: name the package %s%s, with ensure %s", name, version[len(bare):], bare)
}
