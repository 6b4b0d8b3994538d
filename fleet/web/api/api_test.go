package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/model"
)

func serve(f *fixture) http.Handler {
	return api.New(api.Options{Model: f, Source: f, Log: slog.New(slog.DiscardHandler)})
}

// get returns the answer to a request of a path below the prefix.
func get(t *testing.T, h http.Handler, path string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+path, nil))

	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// TestAnswers has each path that answers at once.
func TestAnswers(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := serve(f)
	for path, want := range map[string]string{
		"/overview":                          `"total":1`,
		"/nodes":                             `"rows":[{"node":"web01"`,
		"/nodes/web01":                       `"state":"ok"`,
		"/nodes/web01/facts":                 `{"os":"linux"}`,
		"/nodes/web01/runs/r1":               `{"progress":{"nodes":true,"last_runs":true,"history":false,"problems":["NATS cannot be reached"]},"run":{"protocol":"","run_id":"r1"`,
		"/manifests":                         `"manifests":[]`,
		"/manifests/motd":                    `"name":"motd"`,
		"/runs":                              `"outcome":"failed"`,
		"/events":                            `"text":"line\nof \u003ctext\u003e"`,
		"/requests":                          `"id":"q1"`,
		"/requests/q1%20by%20anna":           `"answers":1,"failed":0,"changed":0,"missing":["web02"],"others":[]}`,
		"/requests/q2?run=true":              `"id":"q2","resource":"run"`,
		"/registrations":                     `"cluster":"test"`,
		"/audit/assignments":                 `{"changes":[{"key":"group.web.app","revision":9,"at":"2026-01-02T03:04:05Z","kind":"removed","by":"bob@desk"},{"key":"stray","revision":8,"at":"2026-01-02T03:04:05Z","kind":"refused","problem":"its key is not `,
		"/audit/assignments?search=ASSIGNED": `{"changes":[{"key":"group.web.app","revision":3,"at":"2026-01-02T03:04:05Z","kind":"assigned","by":"\u003cscript\u003ealert(\"1\")\u003c/script\u003e"}],"matching":1,"more":true}`,
		"/audit/assignments?limit=1":         `"by":"bob@desk"}],"matching":3,"more":true}`,
		"/audit/assignments?by=bob":          `"kind":"removed","by":"bob@desk"}],"matching":1,`,
		"/audit/assignments?by=bo":           `"changes":[],"matching":0,`,
		"/audit/nodes?by=bob":                `"by":"bob (dashboard)","text":"resumed"}],"matching":1,`,
		"/audit/assignments?since=2026-01-02T03:04:05Z&until=2026-01-02T03:04:06Z": `"matching":3,`,
		"/audit/assignments?since=2026-01-02T04:04:05.001%2B01:00":                 `"changes":[],"matching":0,`,
		"/audit/assignments?until=2026-01-02T03:04:05Z":                            `"changes":[],"matching":0,`,
		"/audit/nodes?since=2026-01-02T03:04:05Z":                                  `"matching":2,`,
		"/audit/nodes?until=2026-01-02T03:04:05Z":                                  `"changes":[],"matching":0,`,
		"/audit/nodes":                       `{"changes":[{"key":"node.web01.pause","revision":9,"at":"2026-01-02T03:04:05Z","kind":"resumed","by":"bob (dashboard)","text":"resumed"},{"key":"group.db.labels","revision":8,`,
		"/audit/nodes?search=RACK&limit=1":   `{"changes":[{"key":"group.db.labels","revision":8,"at":"2026-01-02T03:04:05Z","kind":"written","by":"\u003cscript\u003ealert(\"1\")\u003c/script\u003e","text":"labels rack=a3"}],"matching":1,"more":true}`,
		"/audit/nodes?limit=1":               `"text":"resumed"}],"matching":2,"more":true}`,
		"/registrations?cluster=prod":        `{"registrations":[{"protocol":"","cluster":"prod"`,
		"/assignments/group.web.app/history": `{"key":"group.web.app","revisions":[{"key":"group.web.app","revision":3,"by":"anna@desk"}]}`,
	} {
		r := get(t, h, path)
		text := body(t, r)
		if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/json" || !strings.Contains(text, want) {
			t.Errorf("%s: %s %s, want %s", path, r.Status, text, want)
		}
		if r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, r.Header)
		}
		if strings.Contains(text, "<script>") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := serve(f)
	for path, want := range map[string]any{
		"/nodes":           view.NodeQuery{Sort: "name", Limit: 100},
		"/nodes?sort=node": view.NodeQuery{Sort: "name", Limit: 100},
		"/nodes?on=group(%22web%22)%20%26%26%20state==%22failed%22&search=a%20b&state=pending&sort=heard&descending=true&offset=20&limit=1000": view.NodeQuery{
			On: `group("web") && state=="failed"`, Search: "a b", State: fleet.StatusPending, Sort: "heard", Descending: true, Offset: 20, Limit: 1000,
		},
		"/manifests/motd?status=not-applicable&offset=5&limit=7":                         view.ManifestQuery{Name: "motd", Status: fleet.StatusNotApplicable, Offset: 5, Limit: 7},
		"/runs?node=web01&manifest=motd&outcome=failed&cause=drift&search=x&limit=3":     view.EventQuery{Node: "web01", Manifest: "motd", Outcome: "failed", Cause: "drift", Search: "x", Limit: 3},
		"/events?kind=run&run_id=r1&outcome=changed&before=18446744073709551615&limit=1": view.EventQuery{Kind: "run", RunID: "r1", Outcome: "changed", Before: 1<<64 - 1, Limit: 1},
		"/runs?outcome=rejected":   view.EventQuery{Outcome: "refused", Limit: 100},
		"/events?outcome=rejected": view.EventQuery{Outcome: "refused", Limit: 100},
		"/events?node=web01&manifest=group.web.motd&cause=manifest&search=%3Cscript%3E": view.EventQuery{Node: "web01", Manifest: "group.web.motd", Cause: "manifest", Search: "<script>", Limit: 100},
	} {
		if r := get(t, h, path); r.StatusCode != http.StatusOK || !reflect.DeepEqual(f.last(), want) {
			t.Errorf("%s: %s, asked %+v\nwant %+v", path, r.Status, f.last(), want)
		}
	}
}

// problem is RFC 9457.
type problem struct {
	Status int
	Title  string
	Detail string
	Errors []struct{ Message, Location string }
	Line   int
	Column int
	Hint   string
}

func problemOf(t *testing.T, r *http.Response) problem {
	t.Helper()
	var p problem
	text := body(t, r)
	if err := json.Unmarshal([]byte(text), &p); err != nil || r.Header.Get("Content-Type") != "application/problem+json" || p.Status != r.StatusCode {
		t.Fatalf("%s %v: %s", r.Status, r.Header, text)
	}

	return p
}

// TestBounds has each limit of requests.
func TestBounds(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := serve(f)
	for path, where := range map[string]string{
		"/nodes?limit=0":                         "query.limit",
		"/nodes?limit=1001":                      "query.limit",
		"/nodes?limit=x":                         "query.limit",
		"/nodes?offset=-1":                       "query.offset",
		"/nodes?offset=10000001":                 "query.offset",
		"/nodes?state=bogus":                     "query.state",
		"/nodes?sort=bogus":                      "query.sort",
		"/nodes?descending=x":                    "query.descending",
		"/nodes?bogus=1":                         "query.bogus",
		"/nodes?search=" + long(201):             "query.search",
		"/nodes?on=" + long(8193):                "query.on",
		"/nodes/" + long(256):                    "path.node",
		"/manifests/motd?status=ok":              "query.status",
		"/manifests/" + long(256):                "path.name",
		"/runs?outcome=faild":                    "query.outcome",
		"/runs?outcome=started":                  "query.outcome",
		"/runs?cause=drft":                       "query.cause",
		"/events?kind=foo":                       "query.kind",
		"/events?outcome=faild":                  "query.outcome",
		"/events?cause=drft":                     "query.cause",
		"/events/stream?kind=foo":                "query.kind",
		"/events/stream?outcome=faild":           "query.outcome",
		"/events/stream?cause=drft":              "query.cause",
		"/events?before=-1":                      "query.before",
		"/events?limit=5000":                     "query.limit",
		"/events/stream?after=x":                 "query.after",
		"/events/stream?after=1.x":               "query.after",
		"/nodes/web01/runs/" + long(65):          "path.run_id",
		"/assignments/" + long(256) + "/history": "path.key",
		"/assignments/nope/history":              "path.key",
		"/audit/assignments?limit=501":           "query.limit",
		"/audit/nodes?limit=501":                 "query.limit",
		"/audit/nodes?since=yesterday":           "query.since",
		"/audit/assignments?until=12":            "query.until",
		"/registrations?service=" + long(129):    "query.service",
	} {
		r := get(t, h, path)
		if p := problemOf(t, r); r.StatusCode != http.StatusUnprocessableEntity || len(p.Errors) != 1 || p.Errors[0].Location != where {
			t.Errorf("%.60s: %+v", path, p)
		}
	}
	if q := f.last(); q != nil {
		t.Errorf("asked all the same: %v", q)
	}
}

// TestAWordThatIsNearlyRight gets a suggestion.
func TestAWordThatIsNearlyRight(t *testing.T) {
	t.Parallel()
	h := serve(newFixture())
	for path, want := range map[string]string{
		"/events?outcome=rejectd": ", did you mean rejected?",
		"/runs?outcome=faild":     ", did you mean failed?",
		"/nodes?state=okay":       ", did you mean ok?",
		"/nodes?state=bogus":      "",
	} {
		p := problemOf(t, get(t, h, path))
		if text := p.Errors[0].Message; !strings.HasPrefix(text, "expected value to be one of ") || !strings.HasSuffix(text, cmp.Or(want, `"`)) {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// TestWords: every word that reports have can be asked for.
func TestWords(t *testing.T) {
	t.Parallel()
	h := serve(newFixture())
	asks := func(paths []string, parameter string, words ...any) {
		t.Helper()
		for _, path := range paths {
			for _, word := range words {
				if r := get(t, h, fmt.Sprintf("%s?%s=%s", path, parameter, word)); r.StatusCode != http.StatusOK {
					t.Errorf("%s?%s=%s: %s", path, parameter, word, r.Status)
				}
			}
		}
	}
	both, events := []string{"/runs", "/events"}, []string{"/events"}
	asks(both, "outcome", model.OutcomeStable, model.OutcomeChanged, model.OutcomeNoop, model.OutcomeFailed, model.OutcomeNotRun, model.OutcomeRefused)
	asks(events, "outcome", model.OutcomeRefreshed, model.OutcomeUnmet, model.OutcomeSkipped,
		model.HealthOK, model.HealthWarning, model.HealthCritical, model.HealthUnknown,
		model.NodeStarted, model.NodeStopped, model.NodeRefused, model.NodeDropped, model.NodeUnassigned, model.NodeDuplicate, model.NodeFlapping)
	asks(both, "cause", model.CauseManifest, model.CauseDrift, model.CauseSchedule, model.CauseEnsure, model.CauseRequest, model.CauseHealth, model.CauseCommand)
	asks(events, "kind", model.KindRun, model.KindTransaction, model.KindHealth, model.KindEnsure, model.KindNode)
}

func long(n int) string { return strings.Repeat("x", n) }

func TestAWrongTargetExpressionHasItsPlace(t *testing.T) {
	t.Parallel()
	r := get(t, serve(newFixture()), "/nodes?on="+url.QueryEscape(`node == "a" && grop("web")`))
	p := problemOf(t, r)
	if r.StatusCode != http.StatusUnprocessableEntity || p.Line != 1 || p.Column != 16 || p.Hint == "" || !strings.Contains(p.Detail, "column 16") || len(p.Errors) != 1 || p.Errors[0].Location != "query.on" {
		t.Errorf("%+v", p)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	h := serve(newFixture())
	for path, want := range map[string]string{
		"/nodes/none":            `no node "none" is known: /api/v1/nodes?search= finds`,
		"/manifests/group.web.x": `"group.web.x" is a key, not the name of a manifest: use /api/v1/manifests/x, or /api/v1/`,
		"/manifests/none":        `no manifest "none" is assigned: /api/v1/manifests has`,
		"/nodes/web01/runs/none": "the stream has dropped it, or its reports are on their way",
		"/nodes/a%20b/facts":     "no node \"a b\" is known: /api/v1/nodes?search=",
		"/none":                  "unknown path; /api/v1/openapi.json",
		"/":                      "unknown path",
		"/docs":                  "unknown path",
	} {
		r := get(t, h, path)
		if p := problemOf(t, r); r.StatusCode != http.StatusNotFound || !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %+v", path, p)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, api.Prefix+"/nodes", strings.NewReader("{}")))
	if r := w.Result(); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" || problemOf(t, r).Detail == "" {
		t.Errorf("POST: %s", r.Status)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := serve(f)
	for _, c := range []struct {
		err    error
		status int
		want   string
	}{
		{errors.New("no responders"), http.StatusBadGateway, "facts of web01: no responders"},
		{fmt.Errorf("%w (disconnected)", api.ErrUnavailable), http.StatusServiceUnavailable, "facts of web01: NATS cannot be reached now (disconnected): try again"},
		{api.ErrBusy, http.StatusServiceUnavailable, "facts of web01: too many read from NATS at the same time: try again"},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), http.StatusGatewayTimeout, "NATS did not answer within 10s"},
		{context.Canceled, http.StatusServiceUnavailable, "shuts down"},
	} {
		f.fails = c.err
		r := get(t, h, "/nodes/web01/facts")
		if p := problemOf(t, r); r.StatusCode != c.status || !strings.Contains(p.Detail, c.want) {
			t.Errorf("%v: %+v", c.err, p)
		}
	}
}

// TestTheDocumentIsFresh compares docs/openapi.json with the served document, and requests each of its paths.
func TestTheDocumentIsFresh(t *testing.T) {
	t.Parallel()
	f := newFixture()
	h := serve(f)
	served := body(t, get(t, h, "/openapi.json"))
	kept, err := os.ReadFile("../../../docs/openapi.json")
	if err != nil || string(kept) != served {
		t.Errorf("docs/openapi.json is not what is served (%v): go generate ./docs", err)
	}
	var document struct {
		OpenAPI string
		Paths   map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal([]byte(served), &document); err != nil || !strings.HasPrefix(document.OpenAPI, "3.1.") || len(document.Paths) < 12 {
		t.Fatalf("%+v, %v", document, err)
	}
	for path, methods := range document.Paths {
		if acts := methods["post"]; acts.OperationID != "" && len(methods) == 1 {
			continue // TestActing tests these and their answers
		}
		if strings.HasPrefix(path, "/actions") {
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		if path == "/events/stream" {
			cancel()
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, api.Prefix+strings.NewReplacer("{node}", "web01", "{name}", "motd", "{run_id}", "r1", "{key}", "group.web.app", "{id}", "q1%20by%20anna").Replace(path), nil).WithContext(ctx))
		cancel()
		if w.Code != http.StatusOK || methods["get"].OperationID == "" || len(methods) != 1 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestTheDocumentHasTheErrors of every path, and of paths with a request body.
func TestTheDocumentHasTheErrors(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]struct {
			RequestBody any
			Responses   map[string]any
		}
	}
	if err := json.Unmarshal([]byte(body(t, get(t, serve(newFixture()), "/openapi.json"))), &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		for method, operation := range methods {
			want := []string{"401", "421", "422", "429"}
			if operation.RequestBody != nil {
				want = append(want, "400", "403", "413", "415")
			}
			for _, status := range want {
				if operation.Responses[status] == nil {
					t.Errorf("%s %s has no %s", method, path, status)
				}
			}
		}
	}
}

// TestStatesAreThoseOfTheFleet: the states of queries are the states of nodes.
func TestStatesAreThoseOfTheFleet(t *testing.T) {
	t.Parallel()
	h := serve(newFixture())
	for _, state := range fleet.NodeStatuses() {
		if r := get(t, h, "/nodes?state="+string(state)); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", state, r.Status)
		}
	}
}
