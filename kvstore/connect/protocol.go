package connect

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	// ErrProtocol is a server that breaks the protocol of NATS. It ends the connection.
	ErrProtocol = errors.New("the server breaks the protocol of NATS")
	// ErrEnded is a server that ends the connection with an error for which the client
	// would not connect again.
	ErrEnded = errors.New("the server ended the connection")
)

const (
	// maxMessage bounds a message: nats-server takes 64 MiB at most, and adds headers.
	maxMessage = 65 << 20
	// maxLine bounds a line: the longest is an INFO that lists the servers of a cluster.
	maxLine = 1 << 20
)

// operations are the lines that nats-server writes. The client accepts others, too, and
// might see a message begin in one where the check sees none.
var operations = regexp.MustCompile(`^(?:PING|PONG|\+OK|-ERR ([^ \t\r\n][^\r\n]*)|INFO [^ \t\r\n][^\r\n]*|(?:MSG [^ \t\r\n]+ [0-9]{1,18}(?: [^ \t\r\n]+)?|HMSG [^ \t\r\n]+ [0-9]{1,18}(?: [^ \t\r\n]+)? [0-9]{1,18}) ([0-9]{1,18}))\r\n$`)

// protocol is the state of a stream that is checked before the client reads it: the
// client allocates whatever size a message claims, and a line of any length.
type protocol struct {
	// line is what was read of a line.
	line []byte
	// payload is how many bytes of a message are still to come, ending whether the end of
	// its line is, too.
	payload int
	ending  bool
}

// check checks more bytes. The error wraps ErrProtocol.
func (p *protocol) check(b []byte) error {
	for len(b) > 0 {
		if p.payload > 0 {
			n := min(p.payload, len(b))
			p.payload -= n
			b = b[n:]
			continue
		}
		part, rest, ended := bytes.Cut(b, []byte("\n"))
		if len(p.line)+len(part) > maxLine {
			return fmt.Errorf("%w: a line has more than %d bytes", ErrProtocol, maxLine)
		}
		p.line, b = append(p.line, part...), rest
		if !ended {
			return nil
		}
		if err := p.checkLine(append(p.line, '\n')); err != nil {
			return err
		}
		p.line = p.line[:0]
	}

	return nil
}

// checkLine checks a complete line.
func (p *protocol) checkLine(line []byte) error {
	if p.ending {
		p.ending = false
		if string(line) != "\r\n" {
			return fmt.Errorf("%w: a message does not end where it should", ErrProtocol)
		}
		return nil
	}
	m := operations.FindSubmatch(line)
	if m == nil {
		return fmt.Errorf("%w: %.40q", ErrProtocol, line)
	}
	if problem := string(m[1]); problem != "" && !isSurvived(problem) {
		return fmt.Errorf("%w: %.200q", ErrEnded, strings.Trim(problem, "'"))
	}
	text := string(m[2])
	if text == "" {
		return nil
	}
	size, err := strconv.Atoi(text)
	if err != nil || size > maxMessage {
		return fmt.Errorf("%w: a message of %s bytes, the largest has %d", ErrProtocol, text, maxMessage)
	}
	p.payload, p.ending = size, true

	return nil
}

// isSurvived reports whether the client goes on, or connects again, after an error of
// the server. It closes the connection for good after any other.
func isSurvived(problem string) bool {
	problem = strings.ToLower(strings.Trim(strings.TrimSpace(problem), "'"))
	switch problem {
	case "stale connection", "maximum connections exceeded", "maximum account active connections exceeded", "unknown protocol operation":
		return true
	}

	return slices.ContainsFunc([]string{
		"permissions violation", "maximum subscriptions exceeded", "authorization violation",
		"user authentication expired", "user authentication revoked", "account authentication expired",
	}, func(begin string) bool { return strings.HasPrefix(problem, begin) })
}
