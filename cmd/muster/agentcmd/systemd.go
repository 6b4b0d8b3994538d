package agentcmd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/model"
)

// notifySystemd sends states to systemd, if it supervises the service.
func notifySystemd(log *slog.Logger, states ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		log.Debug("systemd was not notified", "error", err)
	}
}

// reloading reports a reload to systemd until end is called.
func (n *Node) reloading() (end func()) {
	notifySystemd(n.log, daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))

	return func() { notifySystemd(n.log, daemon.SdNotifyReady) }
}

// supervised reports the start, the status and the watchdog to systemd until ctx ends. running ends when the
// agent stops.
func (n *Node) supervised(ctx, running context.Context) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	defer context.AfterFunc(running, func() { notifySystemd(n.log, daemon.SdNotifyStopping, "STATUS=shutting down") })()
	select {
	case <-n.agent.Started():
	case <-ctx.Done():
		return
	}
	last := statusLine(n.describe())
	notifySystemd(n.log, daemon.SdNotifyReady, "STATUS="+last)
	ticks := watchdogTicks(n.log)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			if !n.agent.Alive() && running.Err() == nil {
				n.log.ErrorContext(ctx, "the agent makes no progress, systemd will start it again")
				continue
			}
			notifySystemd(n.log, daemon.SdNotifyWatchdog)
			continue
		case <-n.agent.Changed():
		case <-n.connection.shown.changed:
		}
		if line := statusLine(n.describe()); line != last && running.Err() == nil {
			last = line
			notifySystemd(n.log, "STATUS="+line)
		}
	}
}

// watchdogTicks returns a channel that ticks when the systemd watchdog is due, or nil without a watchdog.
func watchdogTicks(log *slog.Logger) <-chan time.Time {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("no watchdog", "error", err)
	}
	if every <= 0 {
		return nil
	}

	return time.Tick(every / 2)
}

// statusLine formats a status as one line, such as "connected, 3 manifests, 1 failed".
func statusLine(s model.AgentStatus) string {
	parts := []string{"not connected", print.Count(len(s.Manifests), "manifest")}
	if s.NATS.Connected {
		parts[0] = "connected"
	}
	failed, outdated := 0, 0
	for _, m := range s.Manifests {
		switch {
		case m.State.Outcome.IsFailure():
			failed++
		case m.State.Late != "":
			outdated++
		}
	}
	if s.Paused != nil {
		parts = append(parts, print.Text(s.Paused.String()))
	}
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	if outdated > 0 {
		parts = append(parts, fmt.Sprintf("%d not up to date", outdated))
	}
	if len(s.Notices) > 0 {
		parts = append(parts, print.Count(len(s.Notices), "notice"))
	}

	return strings.Join(parts, ", ")
}
