package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

var (
	// ErrProtocol reports that the server broke the NATS protocol. It ends the connection.
	ErrProtocol = errors.New("the server breaks the protocol of NATS")
	// ErrEnded reports that the server ended the connection with an error after which the client would
	// not reconnect.
	ErrEnded = errors.New("the server ended the connection")
)

const (
	// maxMessage limits a message in bytes. nats-server accepts at most 64 MiB, and adds headers.
	maxMessage = 65 << 20
	// maxLine limits a line in bytes. The longest line is an INFO with the servers of a cluster.
	maxLine = 1 << 20
	// minPayload is the lowest max_payload of a usable server, in bytes. The client rejects larger
	// messages before it sends them, and then no request works.
	minPayload = 1 << 10
)

// operations matches the lines that nats-server writes, except those that announce a message. The
// client accepts further lines. In such a line it could see a message that this check does not see.
var operations = regexp.MustCompile(`^(?:PING|PONG|\+OK|-ERR ([^ \t\r\n][^\r\n]*)|INFO [^ \t\r\n][^\r\n]*)\r\n$`)

// protocol checks a byte stream before the client reads it. The client itself allocates any size that
// a message announces, and any line length.
type protocol struct {
	// line is the beginning of an incomplete line.
	line []byte
	// payload counts the missing bytes of a message. ending reports whether its line end is missing
	// too.
	payload int
	ending  bool
}

// check checks the next bytes. The error wraps ErrProtocol.
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

// announced returns the size of the message that a line announces in the format of nats-server: MSG
// subject sid [reply] size, or HMSG subject sid [reply] headers size. It avoids a regular expression
// because almost every line is of this kind.
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
	names := len(words) - sizes // subject, sid and an optional reply
	if names != 2 && names != 3 || !isNumber(words[1]) || !isNumber(words[names]) || !isNumber(words[len(words)-1]) {
		return 0, false
	}
	size, err := strconv.Atoi(string(words[len(words)-1]))
	if err != nil {
		size = math.MaxInt
	}

	return size, true
}

// isNumber reports whether text is a number of at most 18 digits.
func isNumber(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}

	return len(text) > 0 && len(text) <= 18
}

// isSurvived reports whether the client continues or reconnects after an error of the server. After
// any other error it closes the connection.
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

// checked makes the client check everything that servers send. It wraps the dialer of a context.
func checked(opts *nats.Options) error {
	d := dialer{opts.CustomDialer}
	if d.CustomDialer == nil {
		d.CustomDialer = &net.Dialer{Timeout: opts.Timeout}
	}
	opts.CustomDialer = d

	return nil
}

type dialer struct{ nats.CustomDialer }

// Dial opens a connection that checks every read.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.CustomDialer.Dial(network, address)
	if err != nil {
		return nil, err
	}

	return &checkedConn{Conn: conn}, nil
}

// SkipTLSHandshake reports whether the wrapped dialer does the TLS handshake.
func (d dialer) SkipTLSHandshake() bool {
	own, ok := d.CustomDialer.(interface{ SkipTLSHandshake() bool })

	return ok && own.SkipTLSHandshake()
}

// checkedConn checks the bytes that a server sends. It cannot see inside TLS or a WebSocket. Inside
// TLS only the server named in the certificate can write.
type checkedConn struct {
	net.Conn
	protocol protocol
	// begun reports whether the client has sent anything. sealed reports whether the first bytes were
	// not the NATS protocol.
	begun, sealed bool
}

// Write sends bytes to the server. The client writes before its first read, so begun and sealed need
// no lock.
func (c *checkedConn) Write(b []byte) (int, error) {
	if !c.begun && len(b) > 0 {
		c.begun, c.sealed = true, b[0] != 'C' // CONNECT
	}

	return c.Conn.Write(b)
}

// Read reads from the server. The error wraps ErrProtocol if the server breaks the protocol.
func (c *checkedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.sealed {
		return n, err
	}
	if wrong := c.protocol.check(b[:n]); wrong != nil {
		return 0, wrong
	}

	return n, err
}
