package webfleet

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/model"
)

// Acting serves a fleet behind the guard, to those who sign in.
type Acting struct {
	http.Handler
	Fleet    *Fleet
	Backend  *Backend
	Executor *ask.Executor
	// Read is the token of the viewer wall. Operate and Other are the tokens of the operators anna and bob.
	Read, Operate, Other string

	mu sync.Mutex
	// sessions are the cookies of browsers, by token.
	sessions map[string]*http.Cookie
}

// NewActing returns a server of handler's result until the test ends.
func NewActing(t testing.TB, d Data, handler func(*Fleet, *ask.Executor) http.Handler) *Acting {
	t.Helper()
	var lines strings.Builder
	token := func(role access.Role, name string) string {
		secret, line, err := access.NewToken(role, name)
		if err != nil {
			t.Fatal(err)
		}
		lines.WriteString(line)
		return secret
	}
	a := &Acting{Fleet: New(d, time.Now), Read: token(access.Read, "wall"), Operate: token(access.Operate, "anna"), Other: token(access.Operate, "bob")}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	guard, err := access.New(access.Options{Listen: "127.0.0.1:8420", Tokens: path, URL: "https://muster.example.net"}, log)
	if err != nil {
		t.Fatal(err)
	}
	a.Backend = &Backend{Fleet: a.Fleet}
	a.Executor = ask.NewExecutor(ask.ExecutorOptions{Model: a.Fleet, Backend: a.Backend, Log: log, Away: func() error { return a.Backend.Away }})
	t.Cleanup(a.Executor.Close)
	a.Handler = guard.Handler(handler(a.Fleet, a.Executor))

	return a
}

// SignIn returns the session cookie of a browser that signed in with a token.
func (a *Acting) SignIn(t testing.TB, token string) *http.Cookie {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.sessions[token]; known != nil {
		return known
	}
	r := httptest.NewRequest(http.MethodPost, "https://muster.example.net/login", strings.NewReader(url.Values{"token": {token}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	set := w.Result().Cookies()
	if len(set) != 1 {
		t.Fatalf("signing in: %d %s", w.Code, w.Body)
	}
	if a.sessions == nil {
		a.sessions = map[string]*http.Cookie{}
	}
	a.sessions[token] = set[0]

	return set[0]
}

// SetGroups has a node join groups, and leave all others.
func (f *Fleet) SetGroups(node string, groups ...string) {
	f.Change(func(d *Data) {
		nodes := append([]model.Node{}, d.Nodes...)
		for i := range nodes {
			if nodes[i].Node == node {
				nodes[i].Groups = groups
			}
		}
		d.Nodes = nodes
	})
}
