package connect

import (
	"errors"
	"fmt"
	"strings"
)

// ErrControlLine reports a line longer than the server's max_control_line. Only the CONNECT line with
// the JWT of the user can be that long. The error comes with ErrEnded.
var ErrControlLine = errors.New("maximum control line exceeded")

// withControlLine wraps err with ErrControlLine if the server sent that error. Inside TLS and
// WebSockets only the client reads the server's errors.
func withControlLine(err error) error {
	if err == nil || errors.Is(err, ErrControlLine) || !strings.Contains(strings.ToLower(err.Error()), ErrControlLine.Error()) {
		return err
	}

	return fmt.Errorf("%w: %w", ErrEnded, ErrControlLine)
}
