package connect

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// ErrProtocol is a server that breaks the protocol of NATS. The connection is given
// up, and another one is made.
var ErrProtocol = errors.New("the server breaks the protocol of NATS")

const (
	// maxMessage is the largest message that is read: nats-server takes 64 MiB at most,
	// and adds headers to it.
	maxMessage = 65 << 20
	// maxLine is the longest line, which is an INFO that lists the servers of a cluster.
	maxLine = 1 << 20
)

// operations are the lines that a server sends. Nothing but what nats-server writes is
// one: the client reads some others, too, and where a message begins in them is not
// what it looks like.
var operations = regexp.MustCompile(`^(?:PING|PONG|\+OK|-ERR [^ \t\r\n][^\r\n]*|INFO [^ \t\r\n][^\r\n]*|MSG [^ \t\r\n]+ [0-9]{1,18}(?: [^ \t\r\n]+)? ([0-9]{1,18})|HMSG [^ \t\r\n]+ [0-9]{1,18}(?: [^ \t\r\n]+)? [0-9]{1,18} ([0-9]{1,18}))\r\n$`)

// protocol follows what a server sends, before the client reads it: that one makes
// room for a message of any size that the server says, and for a line of any length.
type protocol struct {
	// line is the beginning of a line.
	line []byte
	// payload is how much of a message is still to come, ending whether its end is, too.
	payload int
	ending  bool
}

// check follows some more bytes. The error wraps ErrProtocol.
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
		if err := p.end(append(p.line, '\n')); err != nil {
			return err
		}
		p.line = p.line[:0]
	}

	return nil
}

// end follows the end of a line.
func (p *protocol) end(line []byte) error {
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
	text := string(m[1]) + string(m[2])
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
