package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/state"
)

// Supervisor holds the state directory of an agent, answers on its socket, and informs systemd. Create it with
// NewSupervisor and close it.
type Supervisor struct {
	// ShowConnection adds the connection to a status. ConnectionChanged is notified after changes of the connection.
	ShowConnection    func(*model.AgentStatus)
	ConnectionChanged tasks.Signal

	log *slog.Logger
	// level is the log level, which administrators can change.
	level *slog.LevelVar
	dir   string
	lock  *state.Claim
	// socket is nil if it could not be created.
	socket     *status.Listener
	heartbeats tasks.Signal
}

const holder = "muster agent run"

// NewSupervisor makes this process the only agent of a state directory, and creates its socket. Without a socket the
// agent runs, but muster agent status does not work.
func NewSupervisor(ctx context.Context, dir string, log *slog.Logger, level *slog.LevelVar) (*Supervisor, error) {
	machine := host.New(host.Options{StateDir: dir, Log: log})
	if err := machine.OpenState(false); err != nil {
		return nil, err
	}
	lock, err := machine.Claim(holder)
	if other := (state.LockedError{}); errors.As(err, &other) {
		return nil, fmt.Errorf("the state directory %s is in use by %s: stop that agent, or choose another directory with state_dir or --state-dir", dir, other.Holder)
	}
	if err != nil {
		return nil, err
	}
	s := &Supervisor{log: log, level: level, dir: dir, lock: lock, heartbeats: tasks.NewSignal()}
	s.listen(ctx)

	return s, nil
}

func (s *Supervisor) listen(ctx context.Context) {
	var err error
	if s.socket, err = status.Listen(s.dir); err != nil {
		s.log.WarnContext(ctx, "muster agent status will not work", "error", err)
		s.socket = nil
	}
}

// Close closes the socket, then releases the directory: another agent may then create its own socket.
func (s *Supervisor) Close() (err error) {
	if s.socket != nil {
		if err = s.socket.Close(); errors.Is(err, fs.ErrNotExist) {
			err = nil // the socket was removed with the directory
		}
	}

	return errors.Join(err, s.lock.Release())
}

// run answers on the socket until ctx ends. If the directory was replaced, it claims the new directory. If another
// agent holds the new directory, it returns an error.
func (s *Supervisor) run(ctx context.Context, a *Agent) error {
	for {
		serving, end := context.WithCancel(ctx)
		var served sync.WaitGroup
		if s.socket != nil {
			served.Go(func() {
				if err := s.socket.Serve(serving, s.routes(a), s.log); err != nil {
					s.log.ErrorContext(ctx, "muster agent status stopped working", "error", err)
				}
			})
		}
		lock, err := s.claimAgain(ctx)
		end()
		served.Wait()
		if lock == nil {
			return err
		}
		if err := s.Close(); err != nil {
			s.log.DebugContext(ctx, "cannot release the former state directory", "error", err)
		}
		s.lock = lock
		s.listen(ctx)
		s.log.WarnContext(ctx, "state directory was replaced; claimed the new one", "directory", s.dir)
	}
}

// claimAgain waits until the claim is lost, and claims the directory again. It returns nil when ctx ends. After a
// temporary error, such as a full disk, it tries again at the next heartbeat.
func (s *Supervisor) claimAgain(ctx context.Context) (*state.Claim, error) {
	machine := host.New(host.Options{StateDir: s.dir, Log: s.log})
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-s.heartbeats:
		}
		if !s.lock.IsLost() {
			continue
		}
		lock, err := machine.Claim(holder)
		if other := (state.LockedError{}); errors.As(err, &other) {
			return nil, fmt.Errorf("the state directory %s was replaced, and is in use by %s: two agents cannot share it", s.dir, other.Holder)
		}
		if err == nil {
			return lock, nil
		}
		s.log.DebugContext(ctx, "cannot claim the state directory again, will retry", "error", err)
	}
}

func (s *Supervisor) notifySystemd(states ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		s.log.Debug("systemd was not notified", "error", err)
	}
}

// Reloading reports a reload to systemd until end is called.
func (s *Supervisor) Reloading() (end func()) {
	s.notifySystemd(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))

	return func() { s.notifySystemd(daemon.SdNotifyReady) }
}

// inform reports the start, the status and the watchdog to systemd until ctx ends. running ends when the agent stops.
func (s *Supervisor) inform(ctx, running context.Context, a *Agent) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	defer context.AfterFunc(running, func() { s.notifySystemd(daemon.SdNotifyStopping, "STATUS=shutting down") })()
	select {
	case <-a.Started():
	case <-ctx.Done():
		return
	}
	last := statusLine(s.describe(a))
	s.notifySystemd(daemon.SdNotifyReady, "STATUS="+last)
	ticks := watchdogTicks(s.log)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			if !a.Alive() && running.Err() == nil {
				s.log.ErrorContext(ctx, "the agent makes no progress, systemd will start it again")
				continue
			}
			s.notifySystemd(daemon.SdNotifyWatchdog)
			continue
		case <-a.status.Shown:
		case <-s.ConnectionChanged:
		}
		if line := statusLine(s.describe(a)); line != last && running.Err() == nil {
			last = line
			s.notifySystemd("STATUS=" + line)
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
	count := func(n int, noun string) string {
		if n == 1 {
			return "1 " + noun
		}
		return fmt.Sprintf("%d %ss", n, noun)
	}
	parts := []string{"not connected", count(len(s.Manifests), "manifest")}
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
		parts = append(parts, model.SafeText(s.Paused.String()))
	}
	if failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", failed))
	}
	if outdated > 0 {
		parts = append(parts, fmt.Sprintf("%d not up to date", outdated))
	}
	if len(s.Notices) > 0 {
		parts = append(parts, count(len(s.Notices), "notice"))
	}

	return strings.Join(parts, ", ")
}

// The routes of the socket.
const (
	RouteStatus   = "/v1/status"
	RouteLogLevel = "/v1/log-level"
)

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// maxBody is the maximum size of a request body.
const maxBody = 1 << 10

// LogLevel is the body of a request for a log level, and its answer.
type LogLevel struct {
	Level string `json:"level"`
}

func (s *Supervisor) routes(a *Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+RouteStatus, func(w http.ResponseWriter, _ *http.Request) { answer(w, s.describe(a)) })
	mux.HandleFunc("GET "+RouteLogLevel, func(w http.ResponseWriter, _ *http.Request) { answer(w, LogLevel{levelName(s.level)}) })
	mux.HandleFunc("PUT "+RouteLogLevel, func(w http.ResponseWriter, r *http.Request) {
		var to LogLevel
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&to)
		level, isLevel := levels[to.Level]
		if err != nil || !isLevel {
			http.Error(w, "the log level is one of debug, info, warn and error", http.StatusBadRequest)
			return
		}
		before := levelName(s.level)
		s.level.Set(level)
		s.log.WarnContext(r.Context(), "log level changed", "before", before, "to", to.Level)
		answer(w, to)
	})

	return mux
}

// describe returns the status of the agent, its connection and its log level.
func (s *Supervisor) describe(a *Agent) model.AgentStatus {
	out := a.Describe()
	if s.ShowConnection != nil {
		s.ShowConnection(&out)
	}
	out.LogLevel = levelName(s.level)

	return out
}

func levelName(l slog.Leveler) string { return strings.ToLower(l.Level().String()) }

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has left
}
