package api_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/testing/webfleet"
)

// acting is the API of a fleet behind the guard.
type acting struct{ *webfleet.Acting }

func newActing(t *testing.T, nodes int) acting {
	t.Helper()

	return acting{webfleet.NewActing(t, webfleet.Sample(nodes, time.Now()), func(f *webfleet.Fleet, x *ask.Executor) http.Handler {
		return api.New(api.Options{Model: f, Source: f, Actions: x, Log: slog.New(slog.DiscardHandler)})
	})}
}

// post sends a document with a token.
func (a acting) post(path, token, document string, headers ...string) *http.Response {
	r := httptest.NewRequest(http.MethodPost, api.Prefix+path, strings.NewReader(document))
	r.Host = "127.0.0.1:8420"
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)

	return w.Result()
}

// get reads a path with a token.
func (a acting) get(path, token string) (int, string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "127.0.0.1:8420"
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)

	return w.Code, w.Body.String()
}

// TestActing has each action and its answer.
func TestActing(t *testing.T) {
	t.Parallel()
	a := newActing(t, 20)
	for _, c := range []struct{ path, document string }{
		{"/actions/pause", `{"target":{"nodes":["web000"]},"until":"2h","reason":"disk","expect":1}`},
		{"/actions/resume", `{"target":{"on":"state == \"paused\""}}`},
		{"/actions/run", `{"target":{"group":"db"},"manifests":["base"],"noop":true,"within":"30s"}`},
		{"/actions/preview", `{"target":{"on":"true"},"key":"group.web.nginx","revision":1023}`},
		{"/actions/preview", `{"target":{"nodes":["web000"]},"name":"motd","manifest":"muster: {resources: []}"}`},
	} {
		r := a.post(c.path, a.Operate, c.document)
		text := body(t, r)
		var got ask.Action
		ok := func() bool {
			return got.OK() || got.Kind == ask.Preview && len(got.Plans) > 0 && !got.Ended.IsZero()
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || r.StatusCode != http.StatusAccepted || !ok() || got.By != "anna" || r.Header.Get("Location") != api.Prefix+"/actions/"+got.ID {
			t.Errorf("%s: %s %v %s, %v", c.path, r.Status, r.Header, text, err)
		}
	}
}

// TestActingWrongly: unauthorized users and ambiguous requests are refused.
func TestActingWrongly(t *testing.T) {
	t.Parallel()
	a := newActing(t, 20)
	const node = `{"target":{"nodes":["web000"]}}`
	for _, c := range []struct {
		path, token, document string
		status                int
		want                  string
	}{
		{"/actions/pause", "", node, http.StatusUnauthorized, "sign in"},
		{"/actions/pause", a.Read, node, http.StatusForbidden, "wall may only read"},
		{"/actions/pause", a.Operate, `{"target":{"nodes":["nope"]}}`, http.StatusNotFound, "node nope is unknown"},
		{"/actions/pause", a.Operate, `{"target":{}}`, http.StatusUnprocessableEntity, "name one target"},
		{"/actions/pause", a.Operate, `{"target":{"on":"true"}}`, http.StatusConflict, `send "all": true`},
		{"/actions/pause", a.Operate, `{"target":{"group":"db"},"expect":5}`, http.StatusConflict, "4 instead of 5"},
		{"/actions/pause", a.Operate, `{"target":{"nodes":["web000"]},"until":"soon"}`, http.StatusUnprocessableEntity, "neither a duration"},
		{"/actions/run", a.Operate, `{"target":{"nodes":["web000"]},"within":"x"}`, http.StatusUnprocessableEntity, "must be a duration"},
		{"/actions/run", a.Operate, `{"target":{"nodes":["web000"]},"noo":true}`, http.StatusUnprocessableEntity, "validation failed"},
		{"/actions/run", a.Operate, `{"target":{"nodes":["web000"],"no":"true"}}`, http.StatusUnprocessableEntity, "validation failed"},
		{"/actions/run", a.Operate, `{`, http.StatusBadRequest, ""},
		{"/actions/run", a.Operate, `{"target":{"on":"` + long(80<<10) + `"}}`, http.StatusRequestEntityTooLarge, ""},
		{"/actions/run?wait=0", a.Operate, node, http.StatusUnprocessableEntity, "validation failed"},
		{"/actions/run?wait=51", a.Operate, node, http.StatusUnprocessableEntity, "validation failed"},
		{"/actions/preview", a.Read, node, http.StatusForbidden, "wall may only read"},
		{"/actions/preview", a.Operate, node, http.StatusUnprocessableEntity, "there is nothing to preview"},
		{"/actions/preview", a.Operate, `{"target":{"nodes":["web000"]},"name":"x","manifest":"muster: ["}`, http.StatusUnprocessableEntity, "nodes reject this: group.all.x:1:1: invalid YAML"},
		{"/actions/preview", a.Operate, `{"target":{"nodes":["web000"]},"name":"x","manifest":"uptime"}`, http.StatusUnprocessableEntity, "nodes reject this: group.all.x:1:1: a manifest must be a mapping"},
		{"/actions/preview", a.Operate, `{"target":{"nodes":["web000"]},"key":"nope"}`, http.StatusUnprocessableEntity, `key "nope", write node.`},
		{"/actions/preview", a.Operate, `{"target":{"nodes":["web000"]},"key":"group.web.nginx","revision":7}`, http.StatusUnprocessableEntity, "does not have revision 7"},
		{"/actions/preview", a.Operate, `{"target":{"nodes":["web000"]},"key":"group.web.nope"}`, http.StatusNotFound, "history of group.web.nope"},
		{"/actions/none", a.Operate, node, http.StatusMethodNotAllowed, "this path is read-only: use GET"},
	} {
		r := a.post(c.path, c.token, c.document)
		if p := problemOf(t, r); r.StatusCode != c.status || !strings.Contains(p.Detail, c.want) {
			t.Errorf("%s %.80s: %+v", c.path, c.document, p)
		}
	}
	r := a.post("/actions/resume", a.Operate, `{"target":{"on":"node == \"a\" && grop(\"web\")"}}`)
	if p := problemOf(t, r); r.StatusCode != http.StatusUnprocessableEntity || p.Column != 16 || len(p.Errors) != 1 || p.Errors[0].Location != "body.target.on" {
		t.Errorf("%+v", p)
	}
	cookie := "__Host-muster=" + a.SignIn(t, a.Operate).Value
	if r := a.post("/actions/pause", "", node, "Cookie", cookie, "Sec-Fetch-Site", "cross-site"); r.StatusCode != http.StatusForbidden || !strings.Contains(problemOf(t, r).Detail, "another site") {
		t.Errorf("by a page of another site: %s", r.Status)
	}
	if r := a.post("/actions/pause", "", "{}", "Cookie", cookie, "Sec-Fetch-Site", "same-origin"); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("by a page of this site: %s", r.Status)
	}
	if got := a.Backend.Done(); len(got) > 0 {
		t.Errorf("it did %q", got)
	}
	off := serve(newFixture())
	for _, path := range []string{"/actions", "/actions/x", "/actions/match?on=true"} {
		if r := get(t, off, path); r.StatusCode != http.StatusForbidden || !strings.Contains(problemOf(t, r).Detail, "--actions") {
			t.Errorf("%s, where actions are off: %s", path, r.Status)
		}
	}
	w := httptest.NewRecorder()
	q := httptest.NewRequest(http.MethodPost, api.Prefix+"/actions/pause", strings.NewReader(node))
	q.Header.Set("Content-Type", "application/json")
	if off.ServeHTTP(w, q); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "--actions") {
		t.Errorf("where actions are off: %d %s", w.Code, w.Body)
	}
}

// TestMatch: the nodes of a target, and their digest. With the digest, an action refuses other nodes of the
// same number.
func TestMatch(t *testing.T) {
	t.Parallel()
	a := newActing(t, 20)
	match := func(query string) (out api.Matched) {
		t.Helper()
		code, text := a.get(api.Prefix+"/actions/match?"+query, a.Read)
		if err := json.Unmarshal([]byte(text), &out); err != nil || code != http.StatusOK {
			t.Errorf("%s: %d %s", query, code, text)
		}
		return out
	}
	db := match("group=db")
	if db.Nodes != 4 || db.All || db.Digest == "" || strings.Join(db.First, " ") != "db001 db006 db011 db016" {
		t.Errorf("%+v", db)
	}
	if same := match("node=db016&node=db011&node=db006&node=db001"); same.Digest != db.Digest || same.Nodes != 4 {
		t.Errorf("by names: %+v", same)
	}
	if all := match("on=true"); !all.All || all.Nodes != 20 || all.Digest == db.Digest {
		t.Errorf("all: %+v", all)
	}
	for query, want := range map[string]int{"group=nope": http.StatusNotFound, "": http.StatusUnprocessableEntity, "on=grop()": http.StatusUnprocessableEntity, "on=true&group=db": http.StatusUnprocessableEntity} {
		if code, text := a.get(api.Prefix+"/actions/match?"+query, a.Read); code != want {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
	document := `{"target":{"group":"db"},"expect":4,"expect_digest":"` + db.Digest + `"}`
	a.Fleet.SetGroups("db001", "edge")
	a.Fleet.SetGroups("web000", "db")
	if r := a.post("/actions/run", a.Operate, document); r.StatusCode != http.StatusConflict || !strings.Contains(problemOf(t, r).Detail, "not the same 4 nodes") {
		t.Errorf("other nodes: %s", r.Status)
	}
	if got := a.Backend.Done(); len(got) > 0 {
		t.Errorf("it did %q", got)
	}
	if r := a.post("/actions/run", a.Operate, `{"target":{"group":"db"},"expect_digest":"`+match("group=db").Digest+`"}`); r.StatusCode != http.StatusAccepted {
		t.Errorf("as they are: %s", r.Status)
	}
	if r := a.post("/actions/run", a.Operate, `{"target":{"group":"db"},"expect_digest":"4"}`); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("what is no digest: %s", r.Status)
	}
}

// TestReadersSeeNoPlans: they have contents of files, and what nodes say of a preview may quote them.
func TestReadersSeeNoPlans(t *testing.T) {
	t.Parallel()
	a := newActing(t, 60)
	r := a.post("/actions/preview", a.Operate, `{"target":{"on":"true"},"key":"group.web.nginx"}`)
	path := r.Header.Get("Location")
	secrets := []string{`+new`, "no space left on device", "/etc/motd", "would change", "would fail", `"plans"`, `"text"`}
	for token, sees := range map[string]bool{a.Operate: true, a.Other: true, a.Read: false} {
		code, text := a.get(path, token)
		var got ask.Action
		if err := json.Unmarshal([]byte(text), &got); err != nil || code != http.StatusOK || got.Nodes != 60 || len(got.States) == 0 || len(got.Results) != 60 || got.Previewed.Key != "group.web.nginx" || got.Withheld == sees {
			t.Errorf("%d %s, %v", code, text, err)
		}
		for _, secret := range secrets {
			if strings.Contains(text, secret) != sees {
				t.Errorf("%q, for who operates %v: %v", secret, sees, !sees)
			}
		}
	}
	a.Backend.Err = errors.New("a secret of the preview")
	a.post("/actions/preview", a.Operate, `{"target":{"on":"true"},"key":"group.web.nginx"}`)
	a.post("/actions/run", a.Operate, `{"target":{"nodes":["web000"]}}`)
	for token, want := range map[string]int{a.Operate: 2, a.Read: 1} {
		if _, text := a.get(api.Prefix+"/actions", token); strings.Count(text, "a secret") != want {
			t.Errorf("the errors of all: %s", text)
		}
	}
}

// TestActionGoesOn: the answer waits a limited time and names the path of the result. More than four at once
// are refused with a time to retry.
func TestActionGoesOn(t *testing.T) {
	t.Parallel()
	a := newActing(t, 20)
	a.Backend.Held = make(chan struct{})
	const node = `{"target":{"nodes":["web000"]}}`
	answers := make(chan *http.Response)
	for _, token := range []string{a.Operate, a.Operate, a.Other, a.Other} {
		go func() { answers <- a.post("/actions/run?wait=1", token, node) }()
	}
	where := ""
	for range 4 {
		r := <-answers
		if text := body(t, r); r.StatusCode != http.StatusAccepted || strings.Contains(text, `"ended"`) {
			t.Fatalf("%s %s", r.Status, text)
		}
		where = r.Header.Get("Location")
	}
	if r := a.post("/actions/run?wait=1", a.Operate, node); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !strings.Contains(problemOf(t, r).Detail, "2 of anna are in progress (run of web000 by anna since ") {
		t.Errorf("the fifth: %s", r.Status)
	}
	if r := a.post(strings.TrimPrefix(where, api.Prefix)+"/cancel", a.Read, ""); r.StatusCode != http.StatusForbidden {
		t.Errorf("cancelled by who reads: %s", r.Status)
	}
	if r := a.post("/actions/nope/cancel", a.Operate, ""); r.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown one: %s", r.Status)
	}
	var got ask.Action
	r := a.post(strings.TrimPrefix(where, api.Prefix)+"/cancel", a.Operate, "")
	if err := json.Unmarshal([]byte(body(t, r)), &got); err != nil || r.StatusCode != http.StatusAccepted || r.Header.Get("Location") != where || got.CancelledBy != "anna" || got.Error != "cancelled by anna" || got.Ended.IsZero() {
		t.Errorf("%s %+v, %v", r.Status, got, err)
	}
	where = a.post("/actions/run?wait=1", map[string]string{"anna": a.Operate, "bob": a.Other}[got.By], node).Header.Get("Location")
	if code, text := a.get(where+"?wait=1", a.Read); code != http.StatusOK || strings.Contains(text, `"ended"`) {
		t.Errorf("%d %s", code, text)
	}
	close(a.Backend.Held)
	if code, text := a.get(where+"?wait=50", a.Read); code != http.StatusOK || !strings.Contains(text, `"ended"`) || !strings.Contains(text, `"by":"`+got.By+`"`) {
		t.Errorf("%d %s", code, text)
	}
	if code, text := a.get(api.Prefix+"/actions", a.Read); code != http.StatusOK || strings.Count(text, `"kind":"run"`) != 5 {
		t.Errorf("%d %s", code, text)
	}
	if code, text := a.get(api.Prefix+"/actions/nope?wait=1", a.Read); code != http.StatusNotFound || !strings.Contains(text, "action \\\"nope\\\" is unknown") {
		t.Errorf("%d %s", code, text)
	}
}
