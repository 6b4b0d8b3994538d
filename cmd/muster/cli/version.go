package cli

import (
	"os"
	"runtime/debug"
)

// release is set by the linker for a released binary.
var release string

// Version returns the release, or what the toolchain recorded about the build.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}

	return info.Main.Version
}

// Hostname returns the name of this machine.
func Hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}

	return name
}
