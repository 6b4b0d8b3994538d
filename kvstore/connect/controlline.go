package connect

import (
	"errors"
	"fmt"
	"strings"
)

// ErrControlLine is a line that is longer than max_control_line of the server: that with
// the JWT of the user, as the others are short. It comes with ErrEnded.
var ErrControlLine = errors.New("maximum control line exceeded")

// withControlLine returns an error of the client that wraps ErrControlLine, where that is what
// the server said: within TLS and web sockets the client alone reads it.
func withControlLine(err error) error {
	if err == nil || errors.Is(err, ErrControlLine) || !strings.Contains(strings.ToLower(err.Error()), ErrControlLine.Error()) {
		return err
	}

	return fmt.Errorf("%w: %w", ErrEnded, ErrControlLine)
}
