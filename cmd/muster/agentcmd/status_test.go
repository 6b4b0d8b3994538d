package agentcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
)

// deny returns the status of a denied subscription.
func deny(subject string) connect.Status {
	d := kvstore.DenialContext{Inbox: "_INBOX_web01", Mistaken: func(string) error { return nil }}
	return connect.Status{Connected: true, Err: d.Of(fmt.Errorf(`%w: Permissions Violation for Subscription to "%s"`, nats.ErrPermissionViolation, subject))}
}

// TestRefusalsAreNotConnections checks that an error on an open connection is logged once, and not as a
// connection change.
func TestRefusalsAreNotConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		connected := make(chan struct{}, 1)
		log := print.NewLogger(&out, "text", slog.LevelInfo)
		l := newConnectionLog(log, connected, reachOf(config.NATS{}), &kvstore.LoggedCause{})
		for range 3 {
			l.status(deny("x"))
			collected()
		}
		if got := out.String(); strings.Contains(got, "connected to NATS") || strings.Count(got, "permission denied") != 1 || len(connected) != 0 {
			t.Errorf("logged %s", got)
		}
		l.status(connect.Status{Connected: true, Server: "nats://x"})
		if got := out.String(); !strings.Contains(got, "connected to NATS") || len(connected) != 1 {
			t.Errorf("logged %s", got)
		}
	})
}

// collected waits until the denials of a connection are logged.
func collected() {
	<-time.After(time.Second)
	synctest.Wait()
}

// TestDenialsAreOneLine checks that the denials of a user without permissions are logged in one line with the
// remedy, in any order. Some missing permissions are logged in one line as well.
func TestDenialsAreOneLine(t *testing.T) {
	const inbox = "_INBOX_web01.x"
	for name, c := range map[string]struct {
		subjects []string
		want     string
	}{
		"all":  {[]string{"$SRV.PING", "muster.changed.x", inbox + "1", "$SRV.STATS", inbox + "2"}, "not permitted to subscribe to _INBOX_web01.x1: this inbox receives the answers, and this user lacks the permissions of web01;"},
		"some": {[]string{"b", "c", "a", "b"}, `see muster fleet permissions error="not permitted to subscribe to a" others=2`},
		"one":  {[]string{"b"}, `see muster fleet permissions error="not permitted to subscribe to b"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				log := print.NewLogger(&out, "text", slog.LevelInfo)
				l := newConnectionLog(log, make(chan struct{}, 1), reachOf(config.NATS{}), &kvstore.LoggedCause{})
				for range 2 {
					l.status(connect.Status{Connected: true, Server: "nats://x"})
					for _, subject := range c.subjects {
						l.status(deny(subject))
					}
					collected()
				}
				if got := out.String(); strings.Count(got, "permission denied") != 1 || !strings.Contains(got, c.want) || strings.Contains(got, "others") != (name == "some") {
					t.Errorf("logged %s", got)
				}
				out.Reset()
				l.status(deny("later"))
				collected()
				if got := strings.Contains(out.String(), "later"); got != (name != "all") {
					t.Errorf("logged later: %s", out.String())
				}
			})
		})
	}
}

// TestInboxPermittedLater checks that remaining denials are logged once answers arrive, in one line, even
// after an immediate reconnect.
func TestInboxPermittedLater(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "soon": time.Second / 2, "later": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				log := print.NewLogger(&out, "text", slog.LevelInfo)
				l := newConnectionLog(log, make(chan struct{}, 1), reachOf(config.NATS{}), &kvstore.LoggedCause{})
				for _, subjects := range [][]string{{"b", "_INBOX_web01.x", "a"}, {"b", "a"}} {
					l.status(connect.Status{Connected: true, Server: "nats://x"})
					for _, subject := range subjects {
						l.status(deny(subject))
					}
					<-time.After(wait)
					synctest.Wait()
				}
				collected()
				got := out.String()
				if strings.Count(got, "permission denied") != 2 || !strings.Contains(got, "this inbox receives the answers") || !strings.Contains(got, `error="not permitted to subscribe to a" others=1`) {
					t.Errorf("logged %s", got)
				}
			})
		})
	}
}

// TestAnOutageIsLoggedOnce: at the loss and at its end, whatever fails in between.
func TestAnOutageIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	log := print.NewLogger(&out, "text", slog.LevelInfo)
	l := newConnectionLog(log, make(chan struct{}, 1), reachOf(config.NATS{}), &kvstore.LoggedCause{})
	refused := connect.Status{Server: "nats://x", Err: errors.New("dial tcp: connection refused")}
	up := connect.Status{Connected: true, Server: "nats://x"}
	for _, s := range []connect.Status{refused, refused, up, {Err: io.EOF}, refused, refused, up, {}, refused} {
		l.status(s)
	}
	want := []string{
		`WARN  cannot reach NATS, will retry servers=nats://x error="dial tcp: connection refused"`,
		`INFO  connected to NATS server=nats://x`,
		`WARN  disconnected from NATS meanwhile="assigned state is maintained, reports are buffered" error="the server closed the connection"`,
		`INFO  reconnected to NATS server=nats://x`,
		`WARN  disconnected from NATS meanwhile="assigned state is maintained, reports are buffered"`,
	}
	if got := linesOf(&out); !slices.Equal(got, want) {
		t.Errorf("logged\n%s", strings.Join(got, "\n"))
	}
}

func linesOf(out *bytes.Buffer) []string {
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.TrimSpace(line))
	}

	return got
}

// TestOwnReconnectsAreNotLogged: but for an outage that begins in one, with its reason or
// by how long it lasts.
func TestOwnReconnectsAreNotLogged(t *testing.T) {
	up, own := connect.Status{Connected: true, Server: "nats://x"}, connect.Status{Server: "nats://x", Own: true}
	refused := connect.Status{Server: "nats://x", Err: errors.New("connection refused")}
	const lost, back = `WARN  disconnected from NATS meanwhile="assigned state is maintained, reports are buffered"`, "INFO  reconnected to NATS server=nats://x"
	for name, c := range map[string]struct {
		statuses []connect.Status
		wait     time.Duration
		want     []string
	}{
		"own":      {[]connect.Status{own, up, own, up}, 0, nil},
		"slow":     {[]connect.Status{own, up}, ownReconnect / 2, nil},
		"refused":  {[]connect.Status{own, refused, refused, up}, 0, []string{lost + ` error="connection refused"`, back}},
		"hanging":  {[]connect.Status{own, up}, 2 * ownReconnect, []string{lost, back}},
		"rejected": {[]connect.Status{own, {Server: "nats://x", Err: nats.ErrAuthorization}, up}, 0, []string{`ERROR NATS rejected user a or the password, will retry servers=nats://x remedy="check user a, and its password in f (nats.password_file)"`, back}},
		"closed":   {[]connect.Status{own}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				l := newConnectionLog(print.NewLogger(&out, "text", slog.LevelInfo), make(chan struct{}, 1), reachOf(config.NATS{User: "a", PasswordFile: "f"}), &kvstore.LoggedCause{})
				l.status(up)
				out.Reset()
				for _, s := range c.statuses {
					l.status(s)
					<-time.After(c.wait)
					synctest.Wait()
				}
				l.close()
				<-time.After(2 * ownReconnect)
				synctest.Wait()
				if got := linesOf(&out); !slices.Equal(got, c.want) {
					t.Errorf("logged\n%s", strings.Join(got, "\n"))
				}
			})
		})
	}
}

// TestAwayIsOneLine checks that an outage is logged in one line above level debug.
func TestAwayIsOneLine(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(kvstore.CauseHandler{Handler: print.NewLogger(&out, "text", slog.LevelInfo).Handler(), Logged: &kvstore.LoggedCause{}})
	l := newConnectionLog(log, make(chan struct{}, 1), reachOf(config.NATS{Servers: []string{"nats://a:b@x"}}), &kvstore.LoggedCause{})
	l.status(connect.Status{Server: "nats://x", Err: nats.ErrNoServers})
	log.Warn("cannot read assignments, will retry", "error", fmt.Errorf("read: %w", nats.ErrDisconnected))
	l.status(connect.Status{Server: "nats://x", Err: nats.ErrNoServers})
	want := []string{`WARN  cannot reach NATS, will retry servers=nats://x error="no server answers" remedy="is nats-server running there? (its address: nats.servers)"`}
	if got := linesOf(&out); !slices.Equal(got, want) {
		t.Errorf("logged\n%s", strings.Join(got, "\n"))
	}
}

// TestALongJWTIsLoggedWithItsRemedy: also where the agent was connected before, and where the
// server rejected the credentials that it had then.
func TestALongJWTIsLoggedWithItsRemedy(t *testing.T) {
	long := connect.Status{Server: "nats://x", Err: fmt.Errorf("%w: %w", connect.ErrEnded, connect.ErrControlLine)}
	rejected := connect.Status{Server: "nats://x", Err: nats.ErrAuthorization}
	up := connect.Status{Connected: true, Server: "nats://x"}
	const want = `ERROR NATS rejected the credentials, will retry servers=nats://x error="the server ended the connection: maximum control line exceeded" remedy="set max_control_line: 64KB in the configuration of each nats-server and reload it: the JWT of the user is too long for the default of 4 KB"`
	for name, statuses := range map[string][]connect.Status{
		"first":    {long, long},
		"before":   {up, {Err: io.EOF}, long, long},
		"rejected": {rejected, long, rejected, long},
		"both":     {long, rejected, long},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			l := newConnectionLog(print.NewLogger(&out, "text", slog.LevelInfo), make(chan struct{}, 1), reachOf(config.NATS{Creds: "c"}), &kvstore.LoggedCause{})
			for _, s := range statuses {
				l.status(s)
			}
			got := linesOf(&out)
			if n := len(slices.DeleteFunc(slices.Clone(got), func(line string) bool { return line != want })); n != 1 {
				t.Errorf("%d such lines, logged\n%s", n, strings.Join(got, "\n"))
			}
			if n := strings.Count(strings.Join(got, "\n"), "check that the server knows the user"); n > 1 {
				t.Errorf("rejected %d times, logged\n%s", n, strings.Join(got, "\n"))
			}
			if away := l.whyAway(); !strings.Contains(away, "max_control_line: 64KB") {
				t.Errorf("away: %s", away)
			}
			l.status(up)
			if away := l.whyAway(); away != "" {
				t.Errorf("connected, and away: %s", away)
			}
		})
	}
}

// TestAPanicEndsOneAnswer checks that a panic is returned as an error and does not end the agent.
func TestAPanicEndsOneAnswer(t *testing.T) {
	ask := guarded(slog.New(slog.DiscardHandler), "facts", func(_ context.Context, request []byte) (any, error) {
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

// TestStatusAfterARepair checks that the row counts current failures, that the repair has a line, and that
// the status of a rejected manifest is the same as in muster fleet nodes.
func TestStatusAfterARepair(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	failed := model.Deviation{Resource: "file#/x", Outcome: model.OutcomeFailed, Reason: "no"}
	last := &model.LastRun{
		Cause: model.CauseSchedule, Outcome: model.OutcomeStable, Started: now.Add(-time.Hour), Counts: model.Counts{Total: 2, Stable: 2}, Deviations: []model.Deviation{failed},
		Repair: &model.LastRepair{Resource: "file#/y", Outcome: model.OutcomeChanged, At: now.Add(-3 * time.Second), Latency: model.Duration(4 * time.Millisecond)},
	}
	var out bytes.Buffer
	showStatus(print.Printer{Out: &out, Err: &out}, model.AgentStatus{Manifests: []model.AssignedManifest{
		{Key: "node.a.one", State: model.ManifestState{Revision: 1, Outcome: model.OutcomeFailed, Error: "no"}, Last: last},
		{Key: "node.a.two", State: model.ManifestState{Seen: 2, Late: "refused: it is wrong"}},
		{
			Key: "node.a.three", State: model.ManifestState{Revision: 3, Outcome: model.OutcomeFailed, Error: "two\nlines"},
			Last: &model.LastRun{Deviations: []model.Deviation{{Resource: "file#/z", Outcome: model.OutcomeFailed, Reason: "two\nlines"}}},
		},
	}}, now)
	for _, want := range []string{
		"node.a.one +1 +failed +schedule +1h0m0s ago +0 +1 +no\n", "node.a.two .*rejected +it is wrong\n",
		"node.a.three .* two lines\n", "file#/z +failed +node.a.three +two lines\n",
		"last repairs of drift:\n  file#/y of node.a.one: changed 3s ago, 4ms after it was noticed\n",
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("%s is missing in\n%s", want, &out)
		}
	}
}

// TestStatusOfManyManifests: of many manifests those that need attention are shown, and how many others there are.
func TestStatusOfManyManifests(t *testing.T) {
	t.Parallel()
	var all []model.AssignedManifest
	for i := range 1740 {
		state := model.ManifestState{Revision: 1, Outcome: model.OutcomeStable}
		if i == 1700 {
			state = model.ManifestState{Revision: 1, Outcome: model.OutcomeFailed, Error: "no space left on device"}
		}
		all = append(all, model.AssignedManifest{Key: fmt.Sprintf("group.all.m%04d", i), State: state})
	}
	var out bytes.Buffer
	showStatus(print.Printer{Out: &out, Err: &out}, model.AgentStatus{Manifests: all}, time.Now())
	text := out.String()
	if lines := strings.Count(text, "\n"); lines > 80 {
		t.Errorf("%d lines", lines)
	}
	for _, want := range []string{"\ngroup.all.m1700  1         failed ", "\nand 1690 more, all stable (--json has all)\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Index(text, "m1700") > strings.Index(text, "m0000") {
		t.Errorf("the failed manifest is not first:\n%s", text)
	}
}
