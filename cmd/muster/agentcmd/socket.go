package agentcmd

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/model"
)

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

// routes returns the HTTP handler of the socket.
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
	for _, s := range []agent.Section{&n.connection.shown, leveler{n.level}} {
		s.Describe(&out)
	}

	return out
}

// leveler adds the log level to a status.
type leveler struct{ slog.Leveler }

// Describe fills in the log level.
func (l leveler) Describe(out *model.AgentStatus) { out.LogLevel = levelName(l) }

// levelName returns a level as written in the configuration.
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

// note applies a change of the connection.
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
