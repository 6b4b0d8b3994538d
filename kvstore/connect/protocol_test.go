package connect

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

const info = `INFO {"server_id":"x","version":"2.11.0","max_payload":1048576,"headers":true} ` + "\r\n"

func TestProtocol(t *testing.T) {
	t.Parallel()
	for sent, ok := range map[string]bool{
		info: true,
		info + "PING\r\nPONG\r\n+OK\r\n-ERR 'Stale Connection'\r\n":                        true,
		"MSG a.b 1 3\r\nabc\r\nMSG a 1 r 0\r\n\r\nPING\r\n":                                true,
		"MSG a 1 6\r\nMSG \r\n\r\nPING\r\n":                                                true,
		"HMSG a 1 12 14\r\nNATS/1.0\r\n\r\nxy\r\nHMSG a 1 r 12 12\r\nNATS/1.0\r\n\r\n\r\n": true,
		fmt.Sprintf("MSG a 1 %d\r\n", maxMessage):                                          true,
		fmt.Sprintf("MSG a 1 %d\r\n", maxMessage+1):                                        false,
		"MSG foo 1 9000000000000000000\r\n":                                                false,
		"MSG foo 1 18446744073709551620\r\nabcd\r\n":                                       false,
		"HMSG foo 1 1 9000000000000000000\r\n":                                             false,
		"msg a 1 3\r\nabc\r\n":                                                             false,
		"MSG a 1 -3\r\n":                                                                   false,
		"MSG a 1 3\r\nabcd\r\n":                                                            false,
		"MSG a 1 3\r\nabc\n\nMSG a 1 9000000000000000000\r\n":                              false,
		"MSG \na 1 9000000000000000000\r\n":                                                false,
		"MSG a\r1 3\r\nabc\r\n":                                                            false,
		"MSG a 1\t3\r\nabc\r\n":                                                            false,
		"-ERR \nMSG a 1 40\r\n" + strings.Repeat("x", 40):                                  false,
		"INFO  \nMSG a 1 40\r\n":                                                           false,
		"PING\n":                                                                           false,
		"PING x\r\n":                                                                       false,
		"\r\n":                                                                             false,
		"INFO " + strings.Repeat("x", maxLine):                                             false,
		"GET / HTTP/1.1\r\n":                                                               false,
		`INFO {"server_id":"x","max_payload":-5}` + "\r\n":                                 false,
		`INFO {"max_payload":1048576,"MAX_PAYLOAD":1}` + "\r\n":                            false,
		`INFO {"max_payload":1048576,"max_payload":1e9}` + "\r\n":                          false,
		`INFO {"server_id":"x"}` + "\r\n":                                                  false,
		`INFO {"max_payload":1024,"headers":true}` + "\r\n":                                true,
		`INFO {"max_payload":1024,"headers":false}` + "\r\n":                               false,
		"INFO x\r\n": false,
	} {
		for _, size := range []int{1, 2, 7, len(sent)} {
			var p protocol
			var err error
			for from := 0; from < len(sent) && err == nil; from += size {
				err = p.check([]byte(sent[from:min(from+size, len(sent))]))
			}
			if (err == nil) != ok || err != nil && !errors.Is(err, ErrProtocol) {
				t.Errorf("%.60q in pieces of %d: %v", sent, size, err)
			}
		}
	}
}

// pipe is a server in the test. Each connection is an end of a pipe.
type pipe chan net.Conn

func (p pipe) Dial(string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p <- server

	return client, nil
}

// serve welcomes a client and sends it some bytes.
func serve(server net.Conn, sent []byte) {
	defer server.Close()
	_ = server.SetDeadline(time.Now().Add(time.Minute))
	_, _ = server.Write([]byte(info))
	heard, b := "", make([]byte, 1024)
	for !strings.HasSuffix(heard, "PING\r\n") {
		n, err := server.Read(b)
		if err != nil {
			return
		}
		heard += string(b[:n])
	}
	go func() {
		for b := make([]byte, 1024); ; {
			if _, err := server.Read(b); err != nil {
				return
			}
		}
	}()
	_, _ = server.Write([]byte("PONG\r\n"))
	_, _ = server.Write(sent)
}

// received has a client read what a server sends, and returns why the connection ended.
func received(t *testing.T, sent []byte) error {
	t.Helper()
	p := make(pipe, 1)
	served := make(chan struct{})
	go func() {
		defer close(served)
		serve(<-p, sent)
	}()
	ended := make(chan error, 1)
	nc, err := nats.Connect("nats://127.0.0.1:1", nats.SetCustomDialer(p), nats.Timeout(time.Minute), checked, nats.NoReconnect(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
		nats.ClosedHandler(func(nc *nats.Conn) { ended <- nc.LastError() }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	<-served

	return <-ended
}

// TestMessagesThatCannotBe: nats.go makes room for all that a server says that it
// sends, and a size that no memory has ends the process.
func TestMessagesThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"MSG foo 1 9000000000000000000\r\nx", "HMSG foo 1 12 9000000000000000000\r\nNATS/1.0"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			if conn, err := l.Accept(); err == nil {
				serve(conn, []byte(line))
			}
		}()
		lost := make(chan error, 10)
		nc, err := Dial(t.Context(), Options{Servers: []string{l.Addr().String()}, OnStatus: func(s Status) {
			if !s.Connected {
				lost <- s.Err
			}
		}})
		if err == nil { // else it came together with the welcome
			err = <-lost
			nc.Close()
		}
		if !errors.Is(err, ErrProtocol) {
			t.Errorf("%q ended the connection with %v", line, err)
		}
		<-served
		_ = l.Close()
	}
}

// TestErrorsThatNobodyKnows: after an error that nats.go does not know it closes the
// connection and never connects again, while the process lives on.
func TestErrorsThatNobodyKnows(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"-ERR 'Maximum Payload Violation'\r\n", "-ERR 'maximum control line exceeded'\r\n", "-ERR anything\r\n", "-ERR '\u017ftale connection'\r\n"} {
		p := make(pipe, 1)
		served := make(chan struct{})
		go func() {
			defer close(served)
			serve(<-p, []byte(line))
			serve(<-p, nil)
		}()
		changes := make(chan Status, 10)
		opts := append(Options{OnStatus: func(s Status) { changes <- s }}.handlers(""),
			nats.SetCustomDialer(p), nats.Timeout(time.Minute), checked, nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))
		nc, err := nats.Connect("nats://127.0.0.1:1", opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		// The first connection is not reported when its loss is known first.
		var reported []bool
		for lost := false; !lost || !reported[len(reported)-1]; {
			select {
			case s := <-changes:
				reported = append(reported, s.Connected)
				lost = lost || !s.Connected
				if !s.Connected && !errors.Is(s.Err, ErrEnded) {
					t.Errorf("%q: %+v", line, s)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%q: closed for good: %v", line, nc.IsClosed())
			}
		}
		if !slices.Equal(reported, []bool{true, false, true}) && !slices.Equal(reported, []bool{false, true}) {
			t.Errorf("%q: the connection was reported as %v", line, reported)
		}
		nc.Close()
		<-served
	}
}

// TestALossIsNotFollowedByTheConnectionBefore: if the server ends the first connection at once, nats.go reports the loss
// before the connection. A lost connection must not be reported as made.
func TestALossIsNotFollowedByTheConnectionBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls func(o *nats.Options, nc *nats.Conn)
		want  []bool
	}{
		"connected, lost, connected": {func(o *nats.Options, nc *nats.Conn) {
			o.ConnectedCB(nc)
			o.DisconnectedErrCB(nc, ErrEnded)
			o.ReconnectedCB(nc)
		}, []bool{true, false, true}},
		"lost before it is reported": {func(o *nats.Options, nc *nats.Conn) { o.DisconnectedErrCB(nc, ErrEnded); o.ConnectedCB(nc) }, []bool{false}},
		"reported after the next one": {func(o *nats.Options, nc *nats.Conn) {
			o.DisconnectedErrCB(nc, ErrEnded)
			o.ReconnectedCB(nc)
			o.ConnectedCB(nc)
		}, []bool{false, true}},
		"connected at the second try": {func(o *nats.Options, nc *nats.Conn) { o.ReconnectErrCB(nc, ErrConnect); o.ConnectedCB(nc) }, []bool{false, true}},
	} {
		var reported []bool
		var o nats.Options
		for _, set := range (Options{OnStatus: func(s Status) { reported = append(reported, s.Connected) }}).handlers("") {
			if err := set(&o); err != nil {
				t.Fatal(err)
			}
		}
		c.calls(&o, &nats.Conn{})
		if !slices.Equal(reported, c.want) {
			t.Errorf("%s: reported %v, not %v", name, reported, c.want)
		}
	}
}

// TestErrorsThatTheClientKnows: each of them is left to it, and it does not close the
// connection for good after any.
func TestErrorsThatTheClientKnows(t *testing.T) {
	t.Parallel()
	for _, problem := range []string{
		"'Permissions Violation for Publish to \"a\"'", "'maximum subscriptions exceeded'", "'Authorization Violation'", "'User Authentication Expired'",
		"'User Authentication Revoked'", "'Account Authentication Expired'", "'Stale Connection'", "'maximum connections exceeded'",
		"'maximum account active connections exceeded'", "'Unknown Protocol Operation'",
	} {
		if err := (&protocol{}).check([]byte("-ERR " + problem + "\r\n")); err != nil {
			t.Errorf("%s: %v", problem, err)
		}
		p := make(pipe, 1)
		go func() { serve(<-p, []byte("-ERR "+problem+"\r\n")) }()
		closed := make(chan bool, 1)
		nc, err := nats.Connect("nats://127.0.0.1:1", nats.SetCustomDialer(p), nats.Timeout(time.Minute), nats.MaxReconnects(-1), nats.ReconnectWait(time.Hour), nats.IgnoreAuthErrorAbort(),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.DisconnectErrHandler(func(nc *nats.Conn, _ error) { closed <- nc.IsClosed() }))
		if err != nil {
			t.Fatal(err)
		}
		if <-closed {
			t.Errorf("%s: nats.go closed the connection", problem)
		}
		nc.SetDisconnectErrHandler(nil)
		nc.Close()
	}
}

// FuzzAnnounced: a line announces a message where it matches the pattern of such lines.
func FuzzAnnounced(f *testing.F) {
	pattern := regexp.MustCompile(`^(?:MSG [^ \t\r\n]+ [0-9]{1,18}(?: [^ \t\r\n]+)?|HMSG [^ \t\r\n]+ [0-9]{1,18}(?: [^ \t\r\n]+)? [0-9]{1,18}) ([0-9]{1,18})\r\n$`)
	nines := strings.Repeat("9", 18)
	words := []string{"", "a", "1", "007", nines, nines + "9", "-1", "+1", "1.0", "x1", "a\tb", "a\rb", "a\nb", "\xff", "é", "\u2003"}
	for _, kind := range []string{"MSG", "HMSG", "msg", "XMSG", ""} {
		for _, end := range []string{"\r\n", "\n", "", " \r\n", "\r\n\r\n", "\r\nx"} {
			for _, rest := range []string{" a 1 3", " a 1 r 3", " a 1 2 3", " a 1 r 2 3", " a 1 r 2 3 4", " a 1", " a", "", "  a 1 3", " a  1 3", "\ta 1 3", " 1 1 1", " 1 1 1 1", " 1 1 1 1 1"} {
				f.Add([]byte(kind + rest + end))
			}
		}
		for _, word := range words {
			for _, rest := range []string{" %s 1 3", " a %s 3", " a 1 %s", " a 1 %s 3", " a %s r 2 3", " a 1 %s 2 3", " a 1 r %s 3", " a 1 r 2 %s"} {
				f.Add([]byte(kind + strings.Replace(rest, "%s", word, 1) + "\r\n"))
			}
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		size, is := announced(line)
		m := pattern.FindSubmatch(line)
		if is != (m != nil) {
			t.Fatalf("%q announces a message: %v", line, is)
		}
		if is && strings.TrimLeft(string(m[1]), "0") != strings.TrimLeft(fmt.Sprint(size), "0") {
			t.Fatalf("%q announces %d bytes", line, size)
		}
	})
}

// FuzzProtocol: the filtered text does not depend on how it is split, and never ends the client.
func FuzzProtocol(f *testing.F) {
	for _, seed := range []string{
		"PING\r\n", "MSG a 1 3\r\nabc\r\nPING\r\n", "HMSG a 1 r 12 14\r\nNATS/1.0\r\n\r\nxy\r\n", "-ERR 'Permissions Violation'\r\n", info, "MSG a 1 0\r\n\r\n", "MSG \na 1 9\r\n",
		"MSG a 1 9000000000000000000\r\n", "HMSG a 1 0 0\r\n\r\n", "HMSG a 1 9 3\r\nabc\r\n", "MSG a 1 2\r\n\r\n\r\n+OK\r\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, sent []byte, size int) {
		var whole, pieces protocol
		err := whole.check(sent)
		var other error
		for from := 0; from < len(sent) && other == nil; {
			to := min(from+max(size, 1), len(sent))
			other = pieces.check(sent[from:to])
			from = to
		}
		if (err == nil) != (other == nil) || err == nil && (whole.payload != pieces.payload || whole.ending != pieces.ending || string(whole.line) != string(pieces.line)) {
			t.Fatalf("at once %+v, %v, in pieces %+v, %v", whole, err, pieces, other)
		}
		if err == nil {
			_ = received(t, sent)
		}
	})
}
