package agentcmd

import (
	"context"
	"errors"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/denial"
	"github.com/musterfleet/muster/model/sparse"
)

// connectionLog logs the changes of a connection, and signals that it is up.
type connectionLog struct {
	log       *slog.Logger
	connected tasks.Signal
	// who is shown where the server rejects the credentials.
	who string
	// denials are those of the connection.
	denials *denials
	// rejected is set while the server rejects the credentials, and that was logged.
	rejected bool
	// causes is cleared for each connection.
	causes *loggedCause
	// errors are those of the connection while it is up, which others may cause.
	errors sparse.Log
	// before is set once it was connected; lost, while it is not and that was logged.
	before, lost bool
}

func (l *connectionLog) status(s connect.Status) {
	var denied *denial.Denial
	switch {
	case errors.As(s.Err, &denied):
		l.denials.note(denied)
	case errors.Is(s.Err, nats.ErrAuthorization):
		if !l.rejected {
			l.rejected = true
			l.log.Error("NATS rejected " + l.who + ", will retry")
		}
	case s.Err != nil && s.Connected:
		l.errors.Log(context.Background(), l.log, slog.LevelWarn, "NATS error", "error", cli.Plain(s.Err))
	case s.Connected:
		event := "connected to NATS"
		if l.before {
			event = "reconnected to NATS"
		}
		l.before, l.lost, l.rejected = true, false, false
		l.causes.replace("")
		l.denials.connected()
		l.log.Info(event, "server", s.Server)
		l.connected.Notify()
	case !l.lost:
		l.lost = true
		l.logLoss(s.Err)
	}
}

// logLoss logs that there is no connection any more, or none yet.
func (l *connectionLog) logLoss(err error) {
	var attributes []any
	if err != nil {
		attributes = []any{"error", cli.Plain(err)}
	}
	if !l.before {
		l.log.Warn("cannot reach NATS, will retry", attributes...)
		return
	}
	l.log.Warn("disconnected from NATS", append([]any{"meanwhile", "the assigned state is kept, reports are buffered"}, attributes...)...)
}
