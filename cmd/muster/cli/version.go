package cli

import "os"

// release is the version of muster. A build sets another one with
// -ldflags "-X github.com/musterfleet/muster/cmd/muster/cli.release=VERSION".
var release = "0.9.0"

// Version returns the version of this program.
func Version() string { return release }

// Hostname returns the name of this machine.
func Hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}

	return name
}
