package agentcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/denial"
)

// TestRefusalsAreNotConnections: what is refused while connected is logged once, as that.
func TestRefusalsAreNotConnections(t *testing.T) {
	var out bytes.Buffer
	connected := make(chan struct{}, 1)
	log := print.NewLogger(&out, "text", slog.LevelInfo)
	l := &connectionLog{log: log, connected: connected, denials: newDenials(log), causes: &loggedCause{}}
	violation := fmt.Errorf(`%w: Permissions Violation for Publish to "x"`, nats.ErrPermissionViolation)
	for range 3 {
		l.status(connect.Status{Connected: true, Err: violation})
		l.denials.flush()
	}
	if got := out.String(); strings.Contains(got, "connected to NATS") || strings.Count(got, "permission denied") != 1 || len(connected) != 0 {
		t.Errorf("logged %s", got)
	}
	l.status(connect.Status{Connected: true, Server: "nats://x"})
	if got := out.String(); !strings.Contains(got, "connected to NATS") || len(connected) != 1 {
		t.Errorf("logged %s", got)
	}
}

// TestDenialsAreOneLine: a user without permissions is denied all that an agent does, in
// any order, and one line has the remedy; one that lacks some has one line for them.
func TestDenialsAreOneLine(t *testing.T) {
	subscription := func(subject string) error {
		d := denial.Connection{Inbox: "_INBOX_web01", Mistaken: func(string) error { return nil }, Node: func() string { return "" }}
		return d.Of(fmt.Errorf(`%w: Permissions Violation for Subscription to "%s"`, nats.ErrPermissionViolation, subject))
	}
	const inbox = "_INBOX_web01.x"
	for name, c := range map[string]struct {
		subjects []string
		want     string
	}{
		"all":  {[]string{"$SRV.PING", "muster.changed.x", inbox + "1", "$SRV.STATS", inbox + "2"}, "not permitted to subscribe to _INBOX_web01.x1: answers arrive there: this user lacks the permissions of web01;"},
		"some": {[]string{"b", "c", "a", "b"}, `see muster fleet permissions error="not permitted to subscribe to a" others=2`},
		"one":  {[]string{"b"}, `see muster fleet permissions error="not permitted to subscribe to b"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log := print.NewLogger(&out, "text", slog.LevelInfo)
			l := &connectionLog{log: log, connected: make(chan struct{}, 1), denials: newDenials(log), causes: &loggedCause{}}
			for range 2 {
				l.status(connect.Status{Connected: true, Server: "nats://x"})
				for _, subject := range c.subjects {
					l.status(connect.Status{Connected: true, Err: subscription(subject)})
				}
				l.denials.flush()
			}
			if got := out.String(); strings.Count(got, "permission denied") != 1 || !strings.Contains(got, c.want) || strings.Contains(got, "others") != (name == "some") {
				t.Errorf("logged %s", got)
			}
			out.Reset()
			l.status(connect.Status{Connected: true, Err: subscription("later")})
			l.denials.flush()
			if got := strings.Contains(out.String(), "later"); got != (name != "all") {
				t.Errorf("logged later: %s", out.String())
			}
		})
	}
}

// TestAnOutageIsLoggedOnce: at the loss and at its end, whatever fails in between.
func TestAnOutageIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	log := print.NewLogger(&out, "text", slog.LevelInfo)
	l := &connectionLog{log: log, connected: make(chan struct{}, 1), denials: newDenials(log), causes: &loggedCause{}}
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

// TestAPanicEndsOneAnswer: whoever asks gets it as an error, and the agent goes on.
func TestAPanicEndsOneAnswer(t *testing.T) {
	s := &nodeService{log: slog.New(slog.DiscardHandler)}
	ask := s.guarded("facts", func(_ context.Context, request []byte) (any, error) {
		if len(request) > 0 {
			panic("unforeseen")
		}
		return "answer", nil
	})
	if _, err := ask(t.Context(), []byte("x")); err == nil || !strings.Contains(err.Error(), "unforeseen") {
		t.Errorf("the error is %v", err)
	}
	if got, err := ask(t.Context(), nil); got != "answer" || err != nil {
		t.Errorf("answered %v, %v", got, err)
	}
}
