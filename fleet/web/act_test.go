package web_test

import (
	"errors"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/web"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/webfleet"
)

// acting is the dashboard of a fleet behind the guard.
type acting struct {
	*webfleet.Acting
	t *testing.T
}

func newActing(t *testing.T, d webfleet.Data) acting {
	t.Helper()

	return acting{webfleet.NewActing(t, d, func(f *webfleet.Fleet, x *ask.Executor) http.Handler {
		return web.New(web.Options{Model: f, Source: f, Version: webfleet.Version, Actions: x})
	}), t}
}

// do makes a request of a signed-in browser.
func (a acting) do(method, path, token string, form url.Values, headers ...string) (*http.Response, string) {
	a.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, path, body)
	r.Host = "127.0.0.1:8420"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if token != "" {
		r.AddCookie(a.SignIn(a.t, token))
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)

	return w.Result(), w.Body.String()
}

// hidden are the hidden fields of a form.
var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// asked returns a form as a browser sends it: with what the page has that asks.
func (a acting) asked(kind string, form url.Values) url.Values {
	a.t.Helper()
	_, text := a.do(http.MethodGet, "/actions/"+kind+"?"+form.Encode(), a.Operate, nil)
	out := maps.Clone(form)
	for _, field := range hidden.FindAllStringSubmatch(text, -1) {
		if !out.Has(field[1]) {
			out.Set(field[1], html.UnescapeString(field[2]))
		}
	}

	return out
}

// act sends a form, and returns the page that the answer leads to.
func (a acting) act(kind string, form url.Values) string {
	a.t.Helper()
	form = a.asked(kind, form)
	r, text := a.do(http.MethodPost, "/actions/"+kind, a.Operate, form)
	if r.StatusCode != http.StatusSeeOther {
		a.t.Fatalf("%s %v: %s %s", kind, form, r.Status, text)
	}
	_, text = a.do(http.MethodGet, r.Header.Get("Location"), a.Operate, nil)

	return text
}

// acts are the paths of forms.
var acts = []string{"/actions/pause", "/actions/resume", "/actions/run", "/actions/preview"}

// TestReadersCannotAct: they see no button, are not asked, and are refused with the reason, in words.
func TestReadersCannotAct(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(20, time.Now()))
	for _, path := range []string{"/nodes", "/nodes/web000", "/manifests/nginx"} {
		_, text := a.do(http.MethodGet, path, a.Operate, nil)
		if !strings.Contains(text, `href="/actions/run?`) {
			t.Errorf("%s: an operator has no button", path)
		}
		if _, text := a.do(http.MethodGet, path, a.Read, nil); strings.Contains(text, "/actions/run") {
			t.Errorf("%s: a reader has a button", path)
		}
	}
	for _, path := range acts {
		if r, text := a.do(http.MethodGet, path+"?node=web000", a.Read, nil); r.StatusCode != http.StatusForbidden || !strings.Contains(text, "wall may only read: that needs the role operate.") {
			t.Errorf("%s: %s %s", path, r.Status, text)
		}
		r, text := a.do(http.MethodPost, path, a.Read, url.Values{"node": {"web000"}, "nodes": {"1"}})
		if r.StatusCode != http.StatusForbidden || r.Header.Get("Content-Type") != "text/plain; charset=utf-8" || text != "wall may only read: that needs the role operate\n" {
			t.Errorf("%s: %s %v %s", path, r.Status, r.Header, text)
		}
		if r, _ := a.do(http.MethodPost, path, "", url.Values{"node": {"web000"}, "nodes": {"1"}}); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s, of nobody: %s", path, r.Status)
		}
	}
	// Without a guard there are no users.
	alone := web.New(web.Options{Model: a.Fleet, Source: a.Fleet, Actions: a.Executor})
	off := web.New(web.Options{Model: a.Fleet, Source: a.Fleet})
	for _, path := range acts {
		for want, h := range map[string]http.Handler{"The dashboard is read-only until you sign in": alone, "start muster fleet serve with --actions": off} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("node=web000&nodes=1"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	}
	if got := a.Backend.Done(); len(got) > 0 {
		t.Errorf("it did %q", got)
	}
}

// TestOtherSitesCannotAct: a browser request from another site is refused, whatever its cookie. The URL
// behind a proxy is no other site.
func TestOtherSitesCannotAct(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(20, time.Now()))
	form := a.asked("pause", url.Values{"node": {"web000"}})
	for _, from := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example.net"}, {"Sec-Fetch-Site", "", "Origin", "null"}} {
		for _, path := range acts {
			if r, _ := a.do(http.MethodPost, path, a.Operate, form, from...); r.StatusCode != http.StatusForbidden {
				t.Errorf("%v: %s", from, r.Status)
			}
		}
	}
	// A link does not act, whatever it says.
	for _, path := range acts {
		if r, _ := a.do(http.MethodGet, path+"?node=web000&nodes=1", a.Operate, nil, "Sec-Fetch-Site", "cross-site"); r.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %s", path, r.Status)
		}
		if r, _ := a.do(http.MethodPost, path+"?node=web000&nodes=1", a.Operate, nil); r.StatusCode == http.StatusSeeOther {
			t.Errorf("POST of a query: %s", r.Status)
		}
	}
	if got := a.Backend.Done(); len(got) > 0 {
		t.Errorf("it did %q", got)
	}
	if r, text := a.do(http.MethodPost, "/actions/pause", a.Operate, form, "Sec-Fetch-Site", "", "Origin", "https://muster.example.net"); r.StatusCode != http.StatusSeeOther {
		t.Errorf("by the proxy: %s %s", r.Status, text)
	}
}

// TestOnlyWhatWasShown: an action affects only the nodes of the confirmation page, and the whole fleet only
// after confirmation. Otherwise the page appears again with the entered values.
func TestOnlyWhatWasShown(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(20, time.Now()))
	_, text := a.do(http.MethodGet, "/actions/pause?on="+url.QueryEscape(`group("db")`), a.Operate, nil)
	for _, want := range []string{`<strong class="num">4 nodes</strong>`, `name="nodes" value="4"`, `href="/nodes/db001"`, "Pause 4 nodes"} {
		if !strings.Contains(text, want) {
			t.Errorf("it asks without %q", want)
		}
	}
	if strings.Contains(text, `name="all"`) {
		t.Error("it asks for all of the fleet")
	}
	if _, text := a.do(http.MethodGet, "/actions/run?on=true", a.Operate, nil); !strings.Contains(text, "Yes, all 20 nodes of the fleet") {
		t.Error("it does not ask for all of the fleet")
	}
	for _, c := range []struct {
		form   url.Values
		status int
		want   string
	}{
		{url.Values{"on": {`group("db")`}, "nodes": {"3"}, "reason": {"<i>x"}, "until": {"2h"}}, http.StatusConflict, "other nodes match now"},
		{url.Values{"on": {`group("db")`}}, http.StatusConflict, "other nodes match now"},
		{url.Values{"on": {"true"}, "nodes": {"20"}}, http.StatusConflict, "this is for all nodes: confirm it"},
		{url.Values{"on": {"grop("}, "nodes": {"20"}}, http.StatusUnprocessableEntity, "Nothing was done"},
		{url.Values{"node": {"nope"}, "nodes": {"1"}}, http.StatusNotFound, "node nope is unknown"},
		{url.Values{"node": {"web000"}, "nodes": {"1"}}, http.StatusConflict, "other nodes match now"},
		{url.Values{"node": {"web000"}, "nodes": {"1"}, "until": {"soon"}}, http.StatusUnprocessableEntity, "is neither a duration"},
		{url.Values{}, http.StatusUnprocessableEntity, "name one target"},
	} {
		r, text := a.do(http.MethodPost, "/actions/pause", a.Operate, c.form)
		if r.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%v: %s", c.form, r.Status)
		}
		if c.form.Has("reason") && (!strings.Contains(text, `value="&lt;i&gt;x"`) || !strings.Contains(text, `value="2h"`) || !strings.Contains(text, `name="nodes" value="4"`)) {
			t.Errorf("%v: it forgets what was filled in", c.form)
		}
	}
	if r, _ := a.do(http.MethodPost, "/actions/pause", a.Operate, url.Values{"node": {"web000"}, "nodes": {"1"}, "reason": {strings.Repeat("x", 70<<10)}}); r.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a large form: %s", r.Status)
	}
	if got := a.Backend.Done(); len(got) > 0 {
		t.Errorf("it did %q", got)
	}
	a.act("resume", url.Values{"on": {"true"}, "nodes": {"20"}, "all": {"yes"}})
}

// TestNothingIsDoneWhileNATSIsAway: the form reports it and keeps the entered values.
func TestNothingIsDoneWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(20, time.Now()))
	form := a.asked("pause", url.Values{"node": {"web000"}, "reason": {"disk"}})
	a.Backend.Away = errors.New("nats: server is disconnected")
	a.Fleet.Change(func(d *webfleet.Data) { d.Progress.Problems = []string{"NATS cannot be reached since 03:04"} })
	r, text := a.do(http.MethodPost, "/actions/pause", a.Operate, form)
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", r.Status, r.Header)
	}
	for _, want := range []string{"NATS cannot be reached (nats: server is disconnected): nothing was written", `value="disk"`, "Pause 1 node"} {
		if !strings.Contains(text, want) {
			t.Errorf("without %q: %s", want, text)
		}
	}
	if strings.Contains(text, "Show the actions in progress") {
		t.Error("it leads to other actions, which are not why")
	}
	for _, path := range []string{"/actions/pause?node=web000", "/actions/preview"} {
		if _, text := a.do(http.MethodGet, path, a.Operate, nil); !strings.Contains(text, "NATS cannot be reached since 03:04") {
			t.Errorf("%s asks without saying that NATS is away", path)
		}
	}
	if got := a.Backend.Done(); len(got) > 0 {
		t.Errorf("it did %q", got)
	}
}

// TestOnlyTheNodesThatWereShown: other nodes of the same number need a new confirmation.
func TestOnlyTheNodesThatWereShown(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(20, time.Now()))
	form := a.asked("run", url.Values{"on": {`group("db")`}})
	a.Fleet.SetGroups("db001", "edge")
	a.Fleet.SetGroups("web000", "db")
	r, text := a.do(http.MethodPost, "/actions/run", a.Operate, form)
	if r.StatusCode != http.StatusConflict || !strings.Contains(text, "not the same 4 nodes") || !strings.Contains(text, `href="/nodes/web000"`) {
		t.Errorf("other nodes: %s %s", r.Status, text)
	}
	form.Del("digest")
	if r, _ := a.do(http.MethodPost, "/actions/run", a.Operate, form); r.StatusCode != http.StatusConflict {
		t.Errorf("nodes that nobody saw: %s", r.Status)
	}
	if got := a.Backend.Done(); len(got) > 0 {
		t.Errorf("it did %q", got)
	}
	if text := a.act("run", url.Values{"on": {`group("db")`}}); !strings.Contains(text, "4 nodes ran") {
		t.Errorf("confirmed: %s", text)
	}
}

// TestActPages: a form redirects to its results, which others also see.
func TestActPages(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(20, time.Now()))
	text := a.act("pause", url.Values{"node": {"web000"}, "nodes": {"1"}, "until": {"2h"}, "reason": {"disk <b>"}})
	for _, want := range []string{"1 of 1 node paused", "by anna, ", "disk &lt;b&gt;", "Pause: web000"} {
		if !strings.Contains(text, want) {
			t.Errorf("pause has no %q", want)
		}
	}
	if _, text := a.do(http.MethodGet, "/nodes/web000", a.Operate, nil); !strings.Contains(text, `href="/actions/resume?node=web000"`) || strings.Contains(text, `href="/actions/pause`) {
		t.Error("the page of the node does not have the way back")
	}
	a.act("resume", url.Values{"node": {"web000"}, "nodes": {"1"}})
	a.act("pause", url.Values{"group": {"db"}, "nodes": {"4"}})
	if _, text := a.do(http.MethodGet, "/nodes/db001", a.Operate, nil); !strings.Contains(text, `href="/actions/resume?group=db"`) || !strings.Contains(text, "Resume group db") {
		t.Error("a node whose group is paused does not have the way back")
	}
	text = a.act("run", url.Values{"on": {`group("web")`}, "nodes": {"12"}, "noop": {"yes"}, "manifests": {"nginx, base"}, "within": {"30s"}})
	for _, want := range []string{"12 nodes ran", `href="/runs/web`, "Noop run: 12 nodes", "nginx, base"} {
		if !strings.Contains(text, want) {
			t.Errorf("run has no %q: %s", want, text)
		}
	}
	if got := strings.Join(a.Backend.Done(), "\n"); !strings.Contains(got, "pause node.web000 by anna (dashboard): disk <b>\nresume node.web000 by anna (dashboard)\npause group.db by anna (dashboard): \nrun 12 nodes, [nginx base], noop true, ") {
		t.Errorf("it did\n%s", got)
	}
	if _, text := a.do(http.MethodGet, "/actions", a.Read, nil); strings.Count(text, "data-row") != 4 || !strings.Contains(text, ">anna<") {
		t.Errorf("the actions: %s", text)
	}
	if r, text := a.do(http.MethodGet, "/actions/nope", a.Read, nil); r.StatusCode != http.StatusNotFound || !strings.Contains(text, "this server restarted, or another server ran it") {
		t.Errorf("an unknown one: %s", r.Status)
	}
	// A user who is no NATS administrator may pause, and sees why other actions are refused.
	a.Backend.Denied = io.ErrClosedPipe
	if _, text := a.do(http.MethodGet, "/nodes/web003", a.Operate, nil); strings.Contains(text, "/actions/run") || !strings.Contains(text, "/actions/pause") {
		t.Error("there is a button that does nothing")
	}
	if _, text := a.do(http.MethodGet, "/actions/run?node=web000", a.Operate, nil); !strings.Contains(text, io.ErrClosedPipe.Error()) || strings.Contains(text, "<button type=\"submit\" class=\"primary\"") {
		t.Error("it does not say why not")
	}
}

// TestOnlySomeRequestsArePermitted: what serve may not ask nodes has no buttons, and says why; the rest works.
func TestOnlySomeRequestsArePermitted(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(20, time.Now()))
	a.Backend.Unpermitted = map[ask.Kind]error{ask.Preview: io.ErrClosedPipe}
	if _, text := a.do(http.MethodGet, "/nodes/web003", a.Operate, nil); !strings.Contains(text, "/actions/run") {
		t.Error("there is no button to run")
	}
	if _, text := a.do(http.MethodGet, "/actions/preview", a.Operate, nil); !strings.Contains(text, io.ErrClosedPipe.Error()) || strings.Contains(text, "<form class=\"card") {
		t.Errorf("preview: %s", text)
	}
	if _, text := a.do(http.MethodGet, "/actions", a.Operate, nil); strings.Count(text, io.ErrClosedPipe.Error()) != 1 {
		t.Errorf("actions: %s", text)
	}
	if r, text := a.do(http.MethodPost, "/actions/preview", a.Operate, url.Values{"node": {"web003"}, "name": {"motd"}, "manifest": {"muster: {resources: []}"}}); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, io.ErrClosedPipe.Error()) {
		t.Errorf("a preview all the same: %s %s", r.Status, text)
	}
	if text := a.act("run", url.Values{"node": {"web003"}, "nodes": {"1"}}); !strings.Contains(text, "of 1 node ran") {
		t.Errorf("run: %s", text)
	}
	a.Backend.Unpermitted = map[ask.Kind]error{ask.Run: io.ErrClosedPipe}
	if _, text := a.do(http.MethodGet, "/actions/preview", a.Operate, nil); strings.Contains(text, io.ErrClosedPipe.Error()) || !strings.Contains(text, "<form class=\"card") {
		t.Errorf("preview: %s", text)
	}
	if r, text := a.do(http.MethodPost, "/actions/run", a.Operate, url.Values{"node": {"web003"}, "nodes": {"1"}}); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, io.ErrClosedPipe.Error()) {
		t.Errorf("a run all the same: %s %s", r.Status, text)
	}
	if got := a.Backend.Done(); len(got) != 1 || !strings.HasPrefix(got[0], "run 1 nodes") {
		t.Errorf("it did %q", got)
	}
}

// TestActionIsLive: its page is updated as nodes answer, and ends when it has.
func TestActionIsLive(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(20, time.Now()))
	a.Backend.Held = make(chan struct{})
	r, _ := a.do(http.MethodPost, "/actions/run", a.Operate, a.asked("run", url.Values{"node": {"web000"}}))
	path := r.Header.Get("Location")
	if _, text := a.do(http.MethodGet, path, a.Read, nil); !strings.Contains(text, "In progress") || !strings.Contains(text, `sse-connect="`+path) {
		t.Errorf("before the answer: %s", text)
	}
	streamed := make(chan string)
	go func() {
		_, text := a.do(http.MethodGet, path, a.Read, nil, "Accept", "text/event-stream")
		streamed <- text
	}()
	close(a.Backend.Held)
	if text := <-streamed; !strings.Contains(text, "1 of 1 node ran") || !strings.HasSuffix(text, "event: end\ndata: \n\n") {
		t.Errorf("the stream: %s", text)
	}
}

// TestCancel: an operator without a free place sees who holds the places and can cancel; a viewer cannot.
func TestCancel(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(20, time.Now()))
	a.Backend.Held = make(chan struct{})
	form := a.asked("run", url.Values{"node": {"web000"}})
	var path string
	for range 2 { // by a form each would wait for its end a while
		begun, err := a.Executor.Start(ask.Spec{Kind: ask.Run, Target: ask.Target{Nodes: []string{"web000"}}, By: "anna"})
		if err != nil {
			t.Fatal(err)
		}
		path = "/actions/" + begun.ID
	}
	r, text := a.do(http.MethodPost, "/actions/run", a.Operate, form)
	for _, want := range []string{"2 of anna are in progress (run of web000 by anna since ", `href="/actions"`, "Show the actions in progress"} {
		if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !strings.Contains(text, want) {
			t.Errorf("the third has no %q: %s", want, r.Status)
		}
	}
	button := `action="` + path + `/cancel"`
	if _, text := a.do(http.MethodGet, path, a.Other, nil); !strings.Contains(text, button) {
		t.Error("another operator has no button")
	}
	if _, text := a.do(http.MethodGet, path, a.Read, nil); strings.Contains(text, button) {
		t.Error("a reader has the button")
	}
	if r, _ := a.do(http.MethodPost, path+"/cancel", a.Read, nil); r.StatusCode != http.StatusForbidden {
		t.Errorf("by a reader: %s", r.Status)
	}
	if r, _ := a.do(http.MethodPost, path+"/cancel", a.Operate, nil, "Sec-Fetch-Site", "cross-site"); r.StatusCode != http.StatusForbidden {
		t.Errorf("by another site: %s", r.Status)
	}
	if r, text := a.do(http.MethodPost, "/actions/nope/cancel", a.Operate, nil); r.StatusCode != http.StatusNotFound || !strings.Contains(text, "unknown action: this server restarted") {
		t.Errorf("an unknown one: %s", r.Status)
	}
	if r, _ := a.do(http.MethodPost, path+"/cancel", a.Other, nil); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != path {
		t.Errorf("%s %v", r.Status, r.Header)
	}
	_, text = a.do(http.MethodGet, path, a.Operate, nil)
	if !strings.Contains(text, "Cancelled") || !strings.Contains(text, "cancelled by bob") || strings.Contains(text, button) || !strings.Contains(text, "nodes that started the run continue it") {
		t.Errorf("afterwards: %s", text)
	}
	close(a.Backend.Held)
	if r, _ := a.do(http.MethodPost, "/actions/run", a.Operate, form); r.StatusCode != http.StatusSeeOther {
		t.Errorf("in its place: %s", r.Status)
	}
}

// TestHostileAnswers: whatever nodes answer is a text.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	d := webfleet.Sample(3, time.Now())
	d.Nodes[0].Manifests = map[string]model.ManifestState{hostile: {Outcome: model.Outcome(hostile), Error: hostile}}
	d.Nodes[0].Message = hostile
	d.Control = []model.Entry{
		{Key: "node.web000.pause", Revision: 1, Value: []byte(`{"protocol":"io.muster.v1.pause","by":"<script>","reason":"<img src=x>"}`), By: hostile},
		{Key: hostile, Value: []byte(hostile), Refused: hostile, By: hostile},
	}
	a := newActing(t, d)
	name := d.Nodes[0].Node
	r, _ := a.do(http.MethodPost, "/actions/run", a.Operate, a.asked("run", url.Values{"node": {name}}))
	for _, path := range []string{r.Header.Get("Location"), "/actions", "/audit/nodes", "/actions/run?on=" + url.QueryEscape(`node == "`+name+`" || host == "<script>"`), "/actions/pause?node=" + url.QueryEscape(hostile[:100])} {
		_, body := a.do(http.MethodGet, path, a.Operate, nil)
		if at := raw.FindString(body); at != "" || len(body) > 900_000 {
			t.Errorf("%s has %q, %d bytes", path, at, len(body))
		}
	}
}

// TestControlChanges: the known authors of values about nodes.
func TestControlChanges(t *testing.T) {
	t.Parallel()
	d := webfleet.Sample(3, time.Now())
	value := func(text string) []byte { return []byte(text) }
	d.Control = []model.Entry{
		{Key: "node.web000.pause", Revision: 9, Deleted: true, Time: time.Now(), By: "bob (dashboard)"},
		{Key: "group.db.pause", Revision: 8, Value: value(`{"protocol":"io.muster.v1.pause","by":"anna","reason":"disk"}`), Time: time.Now()},
		{Key: "node.web000.labels", Revision: 7, Value: value(`{"protocol":"io.muster.v1.labels","labels":{"rack":"a3","row":"7"}}`), Time: time.Now()},
		{Key: "node.web000.groups", Revision: 6, Value: value(`{"protocol":"io.muster.v1.groups","groups":["canary"]}`), Time: time.Now()},
		{Key: "node.web000.labels", Revision: 5, Value: value("garbage"), Time: time.Now()},
	}
	h := dashboard(webfleet.New(d, time.Now))
	has(t, h, "/audit/nodes", http.StatusOK, "5 changes", "bob (dashboard)", "Resumed", "paused by anna: disk", "labels rack=a3, row=7", "groups canary", "not known", "not used: ", `href="/nodes?on=group%28%22db%22%29"`, `href="/nodes/web000"`)
	has(t, h, "/audit/nodes", http.StatusOK, "16 revisions of each; these are all.")
	has(t, h, "/audit/nodes?q=CANARY", http.StatusOK, "1 change<")
	d.MoreControl = true
	has(t, dashboard(webfleet.New(d, time.Now)), "/audit/nodes", http.StatusOK, "16 revisions of each; it has more than these")
	has(t, h, "/audit/nodes?q=zzz", http.StatusOK, "No change has that")
	has(t, h, "/audit", http.StatusOK, `href="/audit/nodes"`)
}

// TestReadersSeeNoPlans: plans have contents of files, and what nodes say of a preview may quote them.
func TestReadersSeeNoPlans(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(60, time.Now()))
	r, _ := a.do(http.MethodPost, "/actions/preview", a.Operate, a.asked("preview", url.Values{"key": {"group.web.nginx"}, "on": {"true"}}))
	path := r.Header.Get("Location")
	secrets := []string{"+new &lt;b&gt;", "no space left on device", "/etc/motd", "would change", "Would change", "would fail"}
	_, text := a.do(http.MethodGet, path, a.Operate, nil)
	for _, secret := range secrets[:5] {
		if !strings.Contains(text, secret) {
			t.Errorf("an operator does not see %q", secret)
		}
	}
	if !strings.Contains(text, "Only users with the role operate see plans") {
		t.Error("an operator does not see who sees it")
	}
	for _, accept := range []string{"text/html", "text/event-stream"} {
		_, text := a.do(http.MethodGet, path, a.Read, nil, "Accept", accept)
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("a reader sees %q as %s", secret, accept)
			}
		}
		for _, want := range []string{"of 60 nodes", "by anna", "group.web.nginx, revision", "needs the role operate"} {
			if !strings.Contains(text, want) {
				t.Errorf("a reader sees no %q as %s", want, accept)
			}
		}
	}
	// A page for one user is not shown to another.
	if _, text := a.do(http.MethodGet, path, a.Operate, nil); !strings.Contains(text, secrets[0]) {
		t.Error("an operator sees what a reader does")
	}
	if _, text := a.do(http.MethodGet, "/actions/preview", a.Operate, nil); !strings.Contains(text, "Only users with the role operate see plans") {
		t.Error("the form does not say who sees plans")
	}
	if text := a.act("run", url.Values{"node": {"web000"}}); strings.Contains(text, "Only users with the role operate") {
		t.Error("it is said of a run")
	}
}

// TestALinkWritesNoManifest: who follows one would have its guards run by one click.
func TestALinkWritesNoManifest(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(3, time.Now()))
	q := url.Values{"name": {"of-another-site"}, "manifest": {"muster: {resources: [{exec: [{evil: {}}]}]}"}, "on": {"true"}, "key": {"group.web.nginx"}}
	r, text := a.do(http.MethodGet, "/actions/preview?"+q.Encode(), a.Operate, nil)
	if r.StatusCode != http.StatusOK || strings.Contains(text, "of-another-site") || strings.Contains(text, "evil") || !strings.Contains(text, `<option value="group.web.nginx" selected>`) {
		t.Errorf("%s %s", r.Status, text)
	}
}

// TestPreview: of an assignment, a revision, or an entered manifest. Equal plans are shown once.
func TestPreview(t *testing.T) {
	t.Parallel()
	a := newActing(t, webfleet.Sample(60, time.Now()))
	_, text := a.do(http.MethodGet, "/audit/group.web.nginx", a.Operate, nil)
	if !strings.Contains(text, `href="/actions/preview?key=group.web.nginx&amp;on=group%28%22web%22%29&amp;revision=1023"`) {
		t.Error("no revision leads to its preview")
	}
	if _, text := a.do(http.MethodGet, "/audit/group.web.nginx", a.Read, nil); strings.Contains(text, "/actions/preview") {
		t.Error("a reader is led to a preview")
	}
	_, text = a.do(http.MethodGet, "/actions/preview?key=group.web.nginx&revision=1023&on="+url.QueryEscape(`group("web")`), a.Operate, nil)
	for _, want := range []string{`<option value="group.web.nginx" selected>`, `name="revision" value="1023"`, `value="group(&#34;web&#34;)"`, `aria-current="page"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the form has no %q", want)
		}
	}
	text = a.act("preview", url.Values{"key": {"group.web.nginx"}, "revision": {"1023"}, "on": {"true"}})
	for _, want := range []string{"Would change", "1 of 2 resources would change", "1 of 2 resources would fail or not run", "Would fail", "no space left on device", "-old &lt;b&gt;", `class="add">+new &lt;b&gt;`, "group.web.nginx, revision 1023", "Preview of nginx: 60 nodes"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plans have no %q", want)
		}
	}
	a.act("preview", url.Values{"key": {"group.web.nginx"}, "on": {`group("web")`}})
	text = a.act("preview", url.Values{"name": {"motd"}, "manifest": {"muster:\r\n  resources: []"}, "on": {`node == "web000"`}})
	if !strings.Contains(text, "a pasted manifest, as motd") {
		t.Errorf("of what was written: %s", text)
	}
	did := a.Backend.Done()
	if len(did) != 3 || !strings.Contains(did[0], "port: 80\n") || !strings.Contains(did[1], "port: 8080") || did[2] != "preview motd on 1 nodes: muster:\n  resources: []" {
		t.Errorf("it did %q", did)
	}
	for _, c := range []struct {
		form   url.Values
		status int
		want   string
	}{
		{url.Values{"on": {"true"}}, http.StatusUnprocessableEntity, "there is nothing to preview"},
		{url.Values{"on": {"true"}, "key": {"group.web.nginx"}, "revision": {"7"}}, http.StatusUnprocessableEntity, "does not have revision 7"},
		{url.Values{"on": {"true"}, "key": {"group.web.nginx"}, "revision": {"x"}}, http.StatusUnprocessableEntity, "must be a number"},
		{url.Values{"on": {"true"}, "key": {"group.web.nope"}}, http.StatusUnprocessableEntity, "has no assignment group.web.nope"},
		{url.Values{"on": {"true"}, "manifest": {"<textarea>"}, "name": {"a.b"}}, http.StatusUnprocessableEntity, "&lt;textarea&gt;</textarea>"},
		{url.Values{"key": {"group.web.nginx"}}, http.StatusUnprocessableEntity, "name one target"},
		{url.Values{"on": {"true"}, "name": {"x"}, "manifest": {strings.Repeat("x", 300<<10)}}, http.StatusUnprocessableEntity, "at most 262144 are sent"},
		{url.Values{"on": {"true"}, "name": {"x"}, "manifest": {strings.Repeat("x", 1<<20)}}, http.StatusRequestEntityTooLarge, "cannot be read"},
	} {
		if r, text := a.do(http.MethodPost, "/actions/preview", a.Operate, c.form); r.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%.80v: %s", c.form, r.Status)
		}
	}
}
