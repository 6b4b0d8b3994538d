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

// IsNative reports whether apt finds an architecture among the packages of the machine's
// own: these are also those that have none.
func IsNative(arch string) bool { return arch == "all" || arch == Architecture() }

// WithoutNative returns a name as dpkg knows it: without an architecture that is
// native. What dnf knows has no colon in its name.
func WithoutNative(name string) string {
	if bare, arch, _ := strings.Cut(name, ":"); IsNative(arch) {
		return bare
	}

	return name
}

// Canonical is the name of the package without an architecture that says nothing.
func (*Type) Canonical(spec *Spec) string { return WithoutNative(spec.Name) }
