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

// IsNative reports whether the packages of the machine have an architecture. This includes packages for
// all architectures.
func IsNative(arch string) bool { return arch == "all" || arch == Architecture() }

// WithoutNative returns a package name without a native architecture, as dpkg does. Names of dnf have no
// colon.
func WithoutNative(name string) string {
	if bare, arch, _ := strings.Cut(name, ":"); IsNative(arch) {
		return bare
	}

	return name
}

// CanonicalName returns the package name without a redundant architecture.
func (s *Spec) CanonicalName() string { return WithoutNative(s.Name) }
