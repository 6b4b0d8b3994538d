package connect

import (
	"errors"
	"fmt"
)

// The first nats-server with all that muster needs: times to live of messages, and
// direct gets of many messages.
const minServerMajor, minServerMinor = 2, 11

// ErrServer is a nats-server that lacks what muster needs. Nothing is read there or
// written.
var ErrServer = errors.New("nats-server is too old")

// CheckServer returns an error that wraps ErrServer for the version of a server that
// is too old. One of another form, as that of a build from source, is believed to
// be new.
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
