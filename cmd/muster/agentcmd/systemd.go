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

// notifySystemd tells systemd, where it waits for that, how the service is.
func notifySystemd(log *slog.Logger, states ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		log.Debug("systemd was not notified", "error", err)
	}
}

// reloading tells systemd that the service reloads, until end.
func (n *Node) reloading() (end func()) {
	notifySystemd(n.log, daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))

	return func() { notifySystemd(n.log, daemon.SdNotifyReady) }
}

// supervised keeps systemd informed until ctx ends: that the agent has started, what it
// does, and that it goes on. running ends when the agent stops.
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
	look := watchdogLooks(n.log)
	for {
		select {
		case <-ctx.Done():
			return
		case <-look:
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

// watchdogLooks returns when the watchdog of systemd is due; never without one.
func watchdogLooks(log *slog.Logger) <-chan time.Time {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("no watchdog", "error", err)
	}
	if every <= 0 {
		return nil
	}

	return time.Tick(every / 2)
}

// statusLine returns a status in a line: connected, 3 manifests, 1 failed.
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
