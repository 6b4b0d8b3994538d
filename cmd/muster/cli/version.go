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
	if !ok {
		return develVersion
	}

	return versionOf(info)
}

const develVersion = "(devel)"

// versionOf returns the version of a build; of one from a clone the commit, and
// whether files of it were changed.
func versionOf(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != develVersion {
		return v
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	if revision == "" {
		return develVersion
	}
	version := "devel-" + revision[:min(len(revision), 12)]
	if settings["vcs.modified"] == "true" {
		version += "-dirty"
	}

	return version
}

// Hostname returns the name of this machine.
func Hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}

	return name
}
