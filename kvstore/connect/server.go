package connect

import (
	"errors"
	"fmt"
)

// nats-server 2.11 is the first version with message TTLs and batched direct gets.
const minServerMajor, minServerMinor = 2, 11

// ErrServer reports a nats-server that is too old. muster neither reads nor writes there.
var ErrServer = errors.New("nats-server is too old")

// CheckServer returns an error that wraps ErrServer if the version is too old. It accepts versions of
// another form, such as those of source builds.
func CheckServer(version string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return nil
	}
	if major > minServerMajor || major == minServerMajor && minor >= minServerMinor {
		return nil
	}

	return fmt.Errorf("%w: it has version %s, muster needs %d.%d or later", ErrServer, version, minServerMajor, minServerMinor)
}
