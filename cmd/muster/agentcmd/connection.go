package agentcmd

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

// ownReconnect is how long a reconnect that the agent started may take before it counts as an outage. The
// client reports no error if a server accepts the connection but does not answer.
const ownReconnect = 15 * time.Second

// connectionLog logs the changes of a connection, and signals when it is up.
type connectionLog struct {
	log       *slog.Logger
	connected tasks.Signal
	reach     cli.Reach
	// denials logs the denials on the connection.
	denials *kvstore.DenialLog
	// causes is cleared for each new connection.
	causes *kvstore.LoggedCause
	// errors logs errors on an open connection. It is rate-limited, because other users can cause them.
	errors telemetry.RateLimitedLog

	mu sync.Mutex
	// rejected lists the remedies that were logged since the server rejects the credentials.
	rejected []string
	// before is set after the first connection. lost is set after a logged outage until the next connection.
	before, lost bool
	// away describes why there is no connection; empty while connected.
	away string
	// own reports a slow reconnect that the agent started.
	own *time.Timer
	// shown has its own mutex, locked after mu.
	shown shownConnection
}

func newConnectionLog(log *slog.Logger, connected tasks.Signal, reach cli.Reach, causes *kvstore.LoggedCause) *connectionLog {
	return &connectionLog{log: log, connected: connected, reach: reach, denials: kvstore.NewDenialLog(log), causes: causes, shown: shownConnection{changed: tasks.NewSignal()}}
}

func reachOf(n config.NATS) cli.Reach {
	return cli.Reach{
		Options: connect.Options{
			Context: n.Context, Servers: n.Servers, Creds: n.Creds, NKey: n.NKey, User: n.User, PasswordFile: n.PasswordFile,
			TLSCA: n.TLSCA, TLSCert: n.TLSCert, TLSKey: n.TLSKey, APIPrefix: n.APIPrefix,
		},
		Name: func(option string) string {
			if option == "server" {
				option = "servers"
			}
			return "nats." + strings.ReplaceAll(option, "-", "_")
		},
	}
}

func (l *connectionLog) status(s connect.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown.note(s.Connected, s.Server, s.Err)
	var denied *kvstore.Denial
	switch {
	case errors.As(s.Err, &denied):
		l.denials.Note(denied)
	case errors.Is(s.Err, nats.ErrAuthorization), errors.Is(s.Err, connect.ErrControlLine):
		l.reject(s)
	case s.Err != nil && s.Connected:
		l.errors.Log(context.Background(), l.log, slog.LevelWarn, "NATS error", "error", cli.Plain(s.Err))
	case s.Connected:
		l.connect(s.Server)
	case s.Own:
		l.own = time.AfterFunc(ownReconnect, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.own != nil {
				l.lose(connect.Status{Server: s.Server})
			}
		})
	default:
		l.lose(s)
	}
}

// connect logs that the connection is up, at level debug if the agent itself reconnected and no outage was
// logged.
func (l *connectionLog) connect(server string) {
	level, event := slog.LevelInfo, "connected to NATS"
	if l.before {
		event = "reconnected to NATS"
		if !l.lost && len(l.rejected) == 0 {
			level = slog.LevelDebug
		}
	}
	l.before, l.lost, l.rejected, l.away = true, false, nil, ""
	l.endOwn()
	l.causes.Replace("")
	l.denials.Connected()
	l.log.Log(context.Background(), level, event, "server", server)
	l.connected.Notify()
}

func (l *connectionLog) endOwn() {
	if l.own != nil {
		l.own.Stop()
		l.own = nil
	}
}

// close stops the timer, so that nothing is logged later.
func (l *connectionLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endOwn()
}

// whyAway returns why there is no connection, or an empty string.
func (l *connectionLog) whyAway() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.away
}

// reject logs once for each reason why the server rejects the credentials. New credentials, such as a JWT
// with more groups, may be rejected for another reason.
func (l *connectionLog) reject(s connect.Status) {
	who, attributes := "the credentials", []any{"servers", s.Server}
	l.away = "NATS rejected " + who
	switch user := l.reach.User; {
	case errors.Is(s.Err, connect.ErrControlLine):
		l.away += ": " + cli.Plain(s.Err)
		attributes = append(attributes, "error", cli.Plain(s.Err))
	case user != "":
		who = "user " + user + " or the password"
		l.away = "NATS rejected " + who
	}
	remedy := l.reach.Remedy(s.Err)
	l.away += " (" + remedy + ")"
	if slices.Contains(l.rejected, remedy) {
		return
	}
	l.rejected = append(l.rejected, remedy)
	l.log.Error("NATS rejected "+who+", will retry", append(attributes, "remedy", remedy)...)
}

// lose logs a lost or failed connection. Further attempts are logged at level debug.
func (l *connectionLog) lose(s connect.Status) {
	level := slog.LevelWarn
	if l.lost {
		level = slog.LevelDebug
	}
	l.lost = true
	l.endOwn()
	event, attributes := "cannot reach NATS, will retry", []any{"servers", s.Server}
	if l.before && level == slog.LevelWarn {
		event, attributes = "disconnected from NATS", []any{"meanwhile", "assigned state is maintained, reports are buffered"}
	}
	if s.Err != nil {
		attributes = append(attributes, "error", cli.Plain(s.Err))
	}
	remedy := l.remedy(s.Err)
	if remedy != "" && !l.before {
		attributes = append(attributes, "remedy", remedy)
	}
	if len(l.rejected) == 0 {
		l.away = "cannot reach NATS at " + s.Server
		if s.Err != nil {
			l.away += ": " + cli.Plain(s.Err) + " (" + remedy + ")"
		}
	}
	l.log.Log(context.Background(), level, event, attributes...)
}

// remedy returns the remedy for an error, with the source of the server's address.
func (l *connectionLog) remedy(err error) string {
	remedy := l.reach.Remedy(err)
	switch {
	case len(l.reach.Servers) > 0:
		remedy += " (its address: " + l.reach.Name("server") + ")"
	case l.reach.Context != "":
		remedy += " (its address: context " + l.reach.Context + ")"
	}

	return strings.TrimSpace(remedy)
}

// shownConnection is the connection as shown in the status.
type shownConnection struct {
	mu  sync.Mutex
	now model.Connected
	// changed is notified at each change.
	changed tasks.Signal
}

func (c *shownConnection) note(connected bool, server string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = afterChange(c.now, connected, server, err, time.Now().UTC())
	c.changed.Notify()
}

// last reports whether NATS is connected, and the time of the last connection: now, the time of its loss, or
// zero for never.
func (c *shownConnection) last() (connected bool, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.Connected {
		return true, time.Now()
	}

	return false, c.now.Since
}

// Describe fills in the connection.
func (c *shownConnection) Describe(out *model.AgentStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out.NATS = c.now
	if !c.now.Connected { // NATS already shows what these notices say
		out.Notices = slices.DeleteFunc(out.Notices, func(n string) bool { return strings.HasSuffix(n, nats.ErrDisconnected.Error()) })
	}
}

// afterChange returns a connection after a change, or after an error that did not change it.
func afterChange(c model.Connected, connected bool, server string, err error, at time.Time) model.Connected {
	if connected != c.Connected || connected && server != c.Server {
		if connected || c.Connected {
			c.Since = at
		}
		c.Connected = connected
	}
	c.Server = server
	if err != nil {
		c.Error, c.ErrorAt = cli.Plain(err), at
	}

	return c
}
