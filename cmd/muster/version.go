package main

import (
	"fmt"
	"runtime/debug"

	"github.com/choria-io/fisk"
)

// release is set by the linker for a released binary.
var release string

// version is the release, or what the toolchain recorded about the build.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}

	return info.Main.Version
}

func (a *app) addVersion(cli *fisk.Application) {
	cli.Command("version", "Show the version").Action(a.action(func() error {
		_, err := fmt.Fprintln(a.stdout, version())
		return err
	}))
}
