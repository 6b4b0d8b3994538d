package serve

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/segmentio/ksuid"
)

// connection is a connection that is lost if it has an error.
type connection struct {
	Connection
	lost error
}

func (c connection) Away() error { return c.lost }

// sourceOf returns a source of a store with a connection.
func sourceOf(s Store) *source {
	if s.Connection == nil {
		s.Connection = connection{}
	}

	return newSource(s, slog.New(slog.DiscardHandler))
}

// heldReports is a stream of reports without reports that is read when it is released, and that names the node whose
// reports are read.
type heldReports struct {
	Reports
	nodes    chan string
	released chan struct{}
	err      func(node string) error
}

func newHeldReports() heldReports {
	return heldReports{nodes: make(chan string, 100), released: make(chan struct{}), err: func(string) error { return nil }}
}

func (r heldReports) Messages(_ context.Context, in model.ReportRange) iter.Seq2[model.StoredReports, error] {
	return func(yield func(model.StoredReports, error) bool) {
		if in.Since.IsZero() {
			return // the second search for the run
		}
		r.nodes <- in.Node
		<-r.released
		if err := r.err(in.Node); err != nil {
			yield(model.StoredReports{}, err)
		}
	}
}

// TestNothingIsReadWithoutAConnection: requests are answered at once, without a timeout.
func TestNothingIsReadWithoutAConnection(t *testing.T) {
	t.Parallel()
	g := sourceOf(Store{Connection: connection{lost: errors.New("disconnected")}}) // any read would panic
	h := newHandler(t.Context(), view.New(view.Options{}), g, Options{Webhooks: &webhook.Webhooks{}, Log: slog.New(slog.DiscardHandler)}, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/nodes/web01/facts", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "NATS cannot be reached now (disconnected)") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestFewReadAtOnce: however many pages are asked for, few of them read from NATS at the same time.
func TestFewReadAtOnce(t *testing.T) {
	t.Parallel()
	slow := newHeldReports()
	g := sourceOf(Store{Reports: slow})
	h := newHandler(t.Context(), view.New(view.Options{}), g, Options{Webhooks: &webhook.Webhooks{}, Log: slog.New(slog.DiscardHandler)}, nil)
	done := make(chan int)
	const pages = 20
	for range pages {
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/runs/web01/"+ksuid.New().String(), nil))
			done <- w.Code
		}()
	}
	for range maxAsked {
		<-slow.nodes
	}
	if n := len(slow.nodes); n > 0 {
		t.Errorf("%d more read at the same time", n)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := g.Run(ended, "web01", ksuid.New().String()); !errors.Is(err, api.ErrBusy) {
		t.Error(err)
	}
	close(slow.released)
	for range pages {
		if code := <-done; code != http.StatusNotFound {
			t.Errorf("status %d", code)
		}
	}
}

// registered is a stream of registrations that counts who reads them.
type registered struct{ reads, released chan struct{} }

func (r registered) Services(context.Context) ([]registration.Registration, error) {
	r.reads <- struct{}{}
	<-r.released

	return []registration.Registration{{Cluster: "prod", Service: "shop", ProtocolName: "http", Address: "10.0.0.1", Port: 80, Node: "web01"}}, nil
}

// TestRegistrationsAreReadOnce for all who ask, whatever they ask.
func TestRegistrationsAreReadOnce(t *testing.T) {
	t.Parallel()
	slow := registered{reads: make(chan struct{}, 100), released: make(chan struct{})}
	g := sourceOf(Store{Registrations: slow})
	// However long the goroutines take to begin.
	g.registrations = newTTLCache[[]registration.Registration](time.Hour, 1)
	h := newHandler(t.Context(), view.New(view.Options{}), g, Options{Webhooks: &webhook.Webhooks{}, Log: slog.New(slog.DiscardHandler)}, nil)
	answers := make(chan *httptest.ResponseRecorder)
	const each = 10
	for range each {
		for _, path := range []string{"/sd/registrations", "/sd/registrations?cluster=prod", "/api/v1/registrations", "/registrations"} {
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				answers <- w
			}()
		}
	}
	<-slow.reads
	close(slow.released)
	for range 4 * each {
		if w := <-answers; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "web01") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if n := len(slow.reads); n > 0 {
		t.Errorf("they are read %d times more", n)
	}
}

// readers returns what lets some users read, and their tokens.
func readers(t *testing.T, names ...string) (*access.Guard, map[string]string) {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens")
	secrets, lines := map[string]string{}, ""
	for _, name := range names {
		secret, line, err := access.NewToken(access.Read, name)
		if err != nil {
			t.Fatal(err)
		}
		secrets[name], lines = secret, lines+line
	}
	if err := os.WriteFile(tokens, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	guard, err := access.New(access.Options{Listen: "127.0.0.1:8420", Tokens: tokens}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	return guard, secrets
}

// TestNobodyHoldsAllPlaces: what one user asks for leaves places of pages and of the API to others, and few lines in
// the log.
func TestNobodyHoldsAllPlaces(t *testing.T) {
	t.Parallel()
	slow := newHeldReports()
	slow.err = func(node string) error {
		if node != "web02" {
			return errors.New("no")
		}
		return nil
	}
	guard, secrets := readers(t, "eve", "anna")
	var log strings.Builder
	h := guard.Handler(newHandler(t.Context(), view.New(view.Options{}), sourceOf(Store{Reports: slow}), Options{Webhooks: &webhook.Webhooks{}, Log: slog.New(slog.NewTextHandler(&log, nil))}, nil))
	var asking sync.WaitGroup
	ask := func(name, path string) {
		asking.Go(func() {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = "localhost"
			r.Header.Set("Authorization", "Bearer "+secrets[name])
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if (w.Code == http.StatusNotFound) != (name == "anna") || w.Code < http.StatusBadRequest {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		})
	}
	for range 15 {
		ask("eve", "/runs/web01/"+ksuid.New().String())
		ask("eve", "/api/v1/nodes/web01/runs/"+ksuid.New().String())
	}
	of := map[string]int{}
	next := func() {
		select {
		case node := <-slow.nodes:
			of[node]++
		case <-time.After(kvtest.Deadline):
			t.Error("whoever asks later has no place")
		}
	}
	for range maxOwn {
		next()
	}
	ask("anna", "/runs/web02/"+ksuid.New().String())
	ask("anna", "/api/v1/nodes/web02/runs/"+ksuid.New().String())
	for range 2 {
		next()
	}
	if of["web01"] != maxOwn || of["web02"] != 2 {
		t.Errorf("places: %v", of)
	}
	close(slow.released)
	asking.Wait()
	pages, answers := strings.Count(log.String(), "cannot show a page"), strings.Count(log.String(), "a request cannot be answered")
	if pages != 10 || answers > 10 || strings.Count(log.String(), "\n") != pages+answers {
		t.Errorf("%d lines of pages, %d of answers: %s", pages, answers, log.String())
	}
}

// heldAudit is a bucket of assignments whose audit is read when it is released, and that names the user.
type heldAudit struct {
	Assignments
	reads    chan string
	released chan struct{}
}

func (s heldAudit) Audit(ctx context.Context, _ int) ([]model.Entry, bool, error) {
	s.reads <- access.UserOf(ctx).Name
	<-s.released

	return nil, false, nil
}

// TestTheAuditIsReadForAll: API requests and searches use the share of their user. The common page uses no
// share and works for a user without one left.
func TestTheAuditIsReadForAll(t *testing.T) {
	t.Parallel()
	held := heldAudit{reads: make(chan string, 100), released: make(chan struct{})}
	guard, secrets := readers(t, "eve")
	h := guard.Handler(newHandler(t.Context(), view.New(view.Options{}), sourceOf(Store{Assignments: held}), Options{Webhooks: &webhook.Webhooks{}, Log: slog.New(slog.DiscardHandler)}, nil))
	var asking sync.WaitGroup
	ask := func(path string) {
		asking.Go(func() {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = "localhost"
			r.Header.Set("Authorization", "Bearer "+secrets["eve"])
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		})
	}
	of := map[string]int{}
	next := func() {
		t.Helper()
		select {
		case name := <-held.reads:
			of[name]++
		case <-time.After(kvtest.Deadline):
			t.Error("there is no place")
		}
	}
	for i := range maxAsked {
		ask("/api/v1/audit/assignments?search=" + strconv.Itoa(i))
		ask("/audit?q=" + strconv.Itoa(i))
	}
	for range maxOwn {
		next()
	}
	ask("/audit")
	next()
	if of["eve"] != maxOwn || of[""] != 1 {
		t.Errorf("places: %v", of)
	}
	close(held.released)
	asking.Wait()
	for range 2*maxAsked - maxOwn {
		next()
	}
	if of["eve"] != 2*maxAsked || of[""] != 1 {
		t.Errorf("reads: %v", of)
	}
}
