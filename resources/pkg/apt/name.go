package apt

import (
	"fmt"
	"strings"
)

// checkName refuses names that apt reads as another package.
func checkName(name string) error {
	bare, arch, qualified := strings.Cut(name, ":")
	switch {
	case strings.HasSuffix(name, "-"):
		return fmt.Errorf("a package name must not end with -, because apt would remove it: set ensure: absent")
	case qualified && (arch == "" || arch == "any" || arch == "native"):
		return fmt.Errorf("%q is not a package architecture: name it %s", ":"+arch, bare)
	case qualified && strings.HasSuffix(arch, "+"):
		return fmt.Errorf("an architecture does not end with +")
	default:
		return nil
	}
}

// withoutZeroEpoch returns a version as repositories write it.
func withoutZeroEpoch(version string) string {
	epoch, rest, found := strings.Cut(version, ":")
	if found && epoch != "" && strings.Trim(epoch, "0") == "" {
		return rest
	}

	return version
}
