package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	// minPayload is what a message may have at least: the client sends none that is larger than the server
	// says, and asks no server anything that says nothing is.
	minPayload = 1 << 10
)

// operations are the lines that nats-server writes, but for those that announce a message. The client
// accepts others, too, and might see a message begin in one where the check sees none.
var operations = regexp.MustCompile(`^(?:PING|PONG|\+OK|-ERR ([^ \t\r\n][^\r\n]*)|INFO [^ \t\r\n][^\r\n]*)\r\n$`)

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
	if size, is := announced(line); is {
		if size > maxMessage {
			return fmt.Errorf("%w: a message of %d bytes, the largest has %d", ErrProtocol, size, maxMessage)
		}
		p.payload, p.ending = size, true
		return nil
	}
	m := operations.FindSubmatch(line)
	if m == nil {
		return fmt.Errorf("%w: %.40q", ErrProtocol, line)
	}
	if text, is := bytes.CutPrefix(line, []byte("INFO ")); is {
		return checkInfo(text)
	}
	switch problem := strings.Trim(string(m[1]), "'"); {
	case problem == "" || isSurvived(problem):
	case strings.EqualFold(problem, ErrControlLine.Error()):
		return fmt.Errorf("%w: %w", ErrEnded, ErrControlLine)
	default:
		return fmt.Errorf("%w: %.200q", ErrEnded, problem)
	}

	return nil
}

// checkInfo checks what a server says about itself.
func checkInfo(text []byte) error {
	var info struct {
		MaxPayload int64 `json:"max_payload"`
		Headers    bool  `json:"headers"`
	}
	err := json.Unmarshal(text, &info)
	if err != nil {
		return fmt.Errorf("%w: INFO: %w", ErrProtocol, err)
	}
	if info.MaxPayload < minPayload {
		return fmt.Errorf("%w: it takes messages of %d bytes (max_payload), muster needs %d at least", ErrProtocol, info.MaxPayload, minPayload)
	}

	if !info.Headers {
		return fmt.Errorf("%w: it takes no headers, which muster needs", ErrProtocol)
	}

	return nil
}

// announced returns the size of the message that a line announces as nats-server does: MSG subject sid [reply] size,
// or HMSG subject sid [reply] headers size. Almost all lines are such, so this is no pattern.
func announced(line []byte) (size int, is bool) {
	kind, arguments, _ := bytes.Cut(line, []byte(" "))
	arguments, ended := bytes.CutSuffix(arguments, []byte("\r\n"))
	if !ended || bytes.ContainsAny(arguments, "\t\r\n") {
		return 0, false
	}
	sizes := 1
	switch string(kind) {
	case "MSG":
	case "HMSG":
		sizes = 2
	default:
		return 0, false
	}
	words := make([][]byte, 0, 5)
	for word := range bytes.SplitSeq(arguments, []byte(" ")) {
		if len(word) == 0 || len(words) == cap(words) {
			return 0, false
		}
		words = append(words, word)
	}
	names := len(words) - sizes // subject, sid and perhaps reply
	if names != 2 && names != 3 || !isNumber(words[1]) || !isNumber(words[names]) || !isNumber(words[len(words)-1]) {
		return 0, false
	}
	size, err := strconv.Atoi(string(words[len(words)-1]))
	if err != nil {
		size = math.MaxInt
	}

	return size, true
}

// isNumber reports whether a text is a number of at most 18 digits.
func isNumber(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}

	return len(text) > 0 && len(text) <= 18
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
