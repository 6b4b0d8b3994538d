package agentcmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore/connect"
)

// TestRefusalsAreNotConnections: what is refused while connected is logged once, as that.
func TestRefusalsAreNotConnections(t *testing.T) {
	var out bytes.Buffer
	connected := make(chan struct{}, 1)
	l := &connectionLog{log: print.NewLogger(&out, "text", slog.LevelInfo), connected: connected, denied: map[string]time.Time{}, causes: &loggedCause{}}
	violation := fmt.Errorf(`%w: Permissions Violation for Publish to "x"`, nats.ErrPermissionViolation)
	for range 3 {
		l.status(connect.Status{Connected: true, Err: violation})
	}
	if got := out.String(); strings.Contains(got, "connected to NATS") || strings.Count(got, "permission denied") != 1 || len(connected) != 0 {
		t.Errorf("logged %s", got)
	}
	l.status(connect.Status{Connected: true, Server: "nats://x"})
	if got := out.String(); !strings.Contains(got, "connected to NATS") || len(connected) != 1 {
		t.Errorf("logged %s", got)
	}
}

// TestAnOutageIsLoggedOnce: at the loss and at its end, whatever fails in between.
func TestAnOutageIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	l := &connectionLog{log: print.NewLogger(&out, "text", slog.LevelInfo), connected: make(chan struct{}, 1), denied: map[string]time.Time{}, causes: &loggedCause{}}
	refused := connect.Status{Err: errors.New("dial tcp: connection refused")}
	up := connect.Status{Connected: true, Server: "nats://x"}
	for _, s := range []connect.Status{refused, refused, up, {Err: io.EOF}, refused, refused, up, {}, refused} {
		l.status(s)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{
		`WARN  cannot reach NATS, will retry error="dial tcp: connection refused"`,
		`INFO  connected to NATS server=nats://x`,
		`WARN  disconnected from NATS meanwhile="the assigned state is kept, reports are buffered" error="the server closed the connection"`,
		`INFO  reconnected to NATS server=nats://x`,
		`WARN  disconnected from NATS meanwhile="the assigned state is kept, reports are buffered"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("logged\n%s", strings.Join(got, "\n"))
	}
}
