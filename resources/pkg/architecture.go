package pkg

import (
	"runtime"
	"strings"
)

// Architecture returns Debian's name of the architecture of this program.
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

// IsNative reports whether apt finds an architecture among the machine's own
// packages, which include those without one.
func IsNative(arch string) bool { return arch == "all" || arch == Architecture() }

// WithoutNative returns a package name as dpkg knows it, without a native
// architecture. Names of dnf have no colon.
func WithoutNative(name string) string {
	if bare, arch, _ := strings.Cut(name, ":"); IsNative(arch) {
		return bare
	}

	return name
}

// CanonicalName returns the package name without a redundant architecture.
func (s *Spec) CanonicalName() string { return WithoutNative(s.Name) }
