package pkg

import (
	"runtime"
	"strings"
)

// Architecture is Debian's name of the architecture that this program was built for.
func Architecture() string {
	switch runtime.GOARCH {
	case "386":
		return "i386"
	case "arm":
		return "armhf"
	case "ppc64le":
		return "ppc64el"
	default:
		return runtime.GOARCH
	}
}

// IsNative says that apt finds an architecture among the packages of the machine's
// own: these are also those that have none.
func IsNative(arch string) bool { return arch == "all" || arch == Architecture() }

// WithoutNative gives a name as dpkg knows it: without an architecture that is
// native. What dnf knows has no colon in its name.
func WithoutNative(name string) string {
	if bare, arch, _ := strings.Cut(name, ":"); IsNative(arch) {
		return bare
	}

	return name
}

// CanonicalName returns the name of the package without a native architecture.
func (s *Spec) CanonicalName() string { return WithoutNative(s.Name) }
