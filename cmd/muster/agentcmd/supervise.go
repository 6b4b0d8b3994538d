package agentcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/state"
)

// claimed is a state directory that this process holds: its lock and its socket. The socket is nil if it
// could not be created.
type claimed struct {
	dir    string
	lock   *state.Claim
	socket *status.Listener
}

// claim makes this process the only agent of a state directory, and creates its socket. Without a socket the
// agent runs, but muster agent status does not work.
func (n *Node) claim(ctx context.Context, dir string) error {
	machine := host.New(host.Options{StateDir: dir, Log: n.log})
	if err := machine.OpenState(false); err != nil {
		return err
	}
	held, err := machine.Claim("muster agent run")
	if other := (state.LockedError{}); errors.As(err, &other) {
		return fmt.Errorf("the state directory %s is in use by %s: stop that agent, or choose another directory with state_dir or --state-dir", dir, other.Holder)
	}
	if err != nil {
		return err
	}
	n.held = claimed{dir: dir, lock: held}
	n.listen(ctx)
	n.closers = append(n.closers, func() error { return n.held.release() })

	return nil
}

func (n *Node) listen(ctx context.Context) {
	socket, err := status.Listen(n.held.dir)
	if err != nil {
		n.log.WarnContext(ctx, "muster agent status will not work", "error", err)
		return
	}
	n.held.socket = socket
}

// release closes the socket, then releases the directory: another agent may then create its own socket.
func (c *claimed) release() (err error) {
	if c.socket != nil {
		if err = c.socket.Close(); errors.Is(err, fs.ErrNotExist) {
			err = nil // the socket was removed with the directory
		}
	}

	return errors.Join(err, c.lock.Release())
}

// keepClaim answers on the socket until ctx ends. If the directory was replaced, it claims the new directory.
// It returns an error if another agent holds that one.
func (n *Node) keepClaim(ctx context.Context) error {
	for {
		serving, end := context.WithCancel(ctx)
		var served sync.WaitGroup
		served.Go(func() { n.answerLocally(serving) })
		held, err := n.claimAgain(ctx)
		end()
		served.Wait()
		if held == nil {
			return err
		}
		if err := n.held.release(); err != nil {
			n.log.DebugContext(ctx, "cannot release the former state directory", "error", err)
		}
		n.held = claimed{dir: n.held.dir, lock: held}
		n.listen(ctx)
		n.log.WarnContext(ctx, "state directory was replaced; claimed the new one", "directory", n.held.dir)
	}
}

// claimAgain waits until the claim is lost, and claims the directory again. It returns nil when ctx ends.
// After a temporary error, such as a full disk, it tries again at the next heartbeat.
func (n *Node) claimAgain(ctx context.Context) (*state.Claim, error) {
	machine := host.New(host.Options{StateDir: n.held.dir, Log: n.log})
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-n.heartbeats:
		}
		if !n.held.lock.IsLost() {
			continue
		}
		held, err := machine.Claim("muster agent run")
		if other := (state.LockedError{}); errors.As(err, &other) {
			return nil, fmt.Errorf("the state directory %s was replaced, and is in use by %s: two agents cannot share it", n.held.dir, other.Holder)
		}
		if err == nil {
			return held, nil
		}
		n.log.DebugContext(ctx, "cannot claim the state directory again, will retry", "error", err)
	}
}

// answerLocally answers on the socket until ctx ends.
func (n *Node) answerLocally(ctx context.Context) {
	if n.held.socket == nil {
		return
	}
	if err := n.held.socket.Serve(ctx, n.routes(), n.log); err != nil {
		n.log.ErrorContext(ctx, "muster agent status stopped working", "error", err)
	}
}

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

// The routes of the socket.
const (
	routeStatus   = "/v1/status"
	routeLogLevel = "/v1/log-level"
)

// maxBody is the maximum size of a request body.
const maxBody = 1 << 10

// logLevel is the body of a request for a log level, and its answer.
type logLevel struct {
	Level string `json:"level"`
}

func (n *Node) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+routeStatus, func(w http.ResponseWriter, _ *http.Request) { answer(w, n.describe()) })
	mux.HandleFunc("GET "+routeLogLevel, func(w http.ResponseWriter, _ *http.Request) { answer(w, logLevel{levelName(n.level)}) })
	mux.HandleFunc("PUT "+routeLogLevel, func(w http.ResponseWriter, r *http.Request) {
		var to logLevel
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&to)
		if err != nil || levelName(print.Level(to.Level)) != to.Level {
			http.Error(w, "the log level is one of debug, info, warn and error", http.StatusBadRequest)
			return
		}
		before := levelName(n.level)
		n.level.Set(print.Level(to.Level))
		n.log.WarnContext(r.Context(), "log level changed", "before", before, "to", to.Level)
		answer(w, to)
	})

	return mux
}

// describe returns the status of the agent, its connection and its log level.
func (n *Node) describe() model.AgentStatus {
	out := n.agent.Describe()
	n.connection.shown.Describe(&out)
	out.LogLevel = levelName(n.level)

	return out
}

func levelName(l slog.Leveler) string { return strings.ToLower(l.Level().String()) }

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has left
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
