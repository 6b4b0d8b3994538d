package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// site is a muster fleet serve that operators act with.
type site struct {
	t       *testing.T
	process *process
	address string
	// sessions are the cookies of browsers, by token.
	sessions map[string]string
}

// serveActions starts muster fleet serve with actions.
func serveActions(t *testing.T, dir, server, tokens string, more ...string) *site {
	t.Helper()
	s := &site{t: t, process: start(t, dir, append([]string{"--server", server, "fleet", "serve", "--listen", "127.0.0.1:0", "--tokens", tokens, "--actions"}, more...)...)}
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	await(t, "it prints its address", func() bool { return address.MatchString(s.process.text.String()) })
	s.address = address.FindString(s.process.text.String())

	return s
}

// do makes a request, and returns the answer; redirects are followed.
func (s *site) do(method, path string, body io.Reader, headers ...string) (*http.Response, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.address+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}

	return response, string(text)
}

// cookie returns the session cookie of a browser that signed in with a token.
func (s *site) cookie(token string) string {
	s.t.Helper()
	if known, is := s.sessions[token]; is {
		return known
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.address+"login", strings.NewReader(url.Values{"token": {token}}.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	set := response.Cookies()
	if len(set) != 1 {
		s.t.Fatalf("signing in: %s", response.Status)
	}
	if s.sessions == nil {
		s.sessions = map[string]string{}
	}
	s.sessions[token] = set[0].Name + "=" + set[0].Value

	return s.sessions[token]
}

// form sends a form as a browser with a session does.
func (s *site) form(path, token string, fields url.Values, headers ...string) (*http.Response, string) {
	s.t.Helper()
	return s.do(http.MethodPost, path, strings.NewReader(fields.Encode()), append([]string{"Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html", "Cookie", s.cookie(token), "Sec-Fetch-Site", "same-origin"}, headers...)...)
}

// confirmed returns a form with what the page has that asks before the action.
func (s *site) confirmed(path, token string, fields url.Values) url.Values {
	s.t.Helper()
	_, text := s.do(http.MethodGet, path+"?"+fields.Encode(), nil, "Accept", "text/html", "Cookie", s.cookie(token))
	for _, field := range regexp.MustCompile(`name="(nodes|digest)" value="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		fields.Set(field[1], field[2])
	}

	return fields
}

// call sends a document to the API as a program does, and returns the answer.
func (s *site) call(path, token, document string) (status int, action map[string]any) {
	s.t.Helper()
	response, text := s.do(http.MethodPost, "api/v1/"+path, strings.NewReader(document), "Content-Type", "application/json", "Authorization", "Bearer "+token)
	if err := json.Unmarshal([]byte(text), &action); err != nil {
		s.t.Fatalf("%s: %s %s", path, response.Status, text)
	}

	return response.StatusCode, action
}

// TestActions: the role operate permits pause, resume and run, in a browser and through the API; other roles
// do not.
func TestActions(t *testing.T) {
	server := natstest.Start(t)
	dir := t.TempDir()
	fleet := func(args ...string) string {
		t.Helper()
		return muster(t, dir, append([]string{"--server", server.URL()}, args...)...)
	}
	if code, text := start(t, dir, "--server", server.URL(), "fleet", "serve", "--actions").wait(); code != 64 || !strings.Contains(text, "--actions needs sign-in") {
		t.Errorf("without a way to sign in: exit code %d, %s", code, text)
	}
	if code, text := start(t, dir, "--server", server.URL(), "fleet", "serve", "--tokens", filepath.Join(dir, "none"), "--actions", "--sign-previews").wait(); code != 64 || !strings.Contains(text, "--sign-previews needs --actions and --sign-key FILE") {
		t.Errorf("without a key: exit code %d, %s", code, text)
	}
	fleet("fleet", "init", "--yes")
	motd := filepath.Join(dir, "motd")
	manifest := fmt.Sprintf("muster: {resources: [{file: [{%s: {content: hello, owner: \"%d\", group: \"%d\", mode: \"0600\"}}]}]}", motd, os.Geteuid(), os.Getegid())
	agent := start(t, filepath.Join(dir, "node"), "--server", server.URL(), "agent", "run", "--node", "web01", "--group", "web")
	t.Cleanup(func() { agent.signal(syscall.SIGINT); agent.wait() })
	await(t, "the node is known", func() bool { return strings.Contains(fleet("fleet", "nodes"), "web01") })
	fleet("fleet", "push", "--group", "web", "--name", "motd", "--wait", write(t, filepath.Join(dir, "motd.yaml"), manifest))
	tokens := filepath.Join(dir, "tokens")
	read := strings.TrimSpace(fleet("fleet", "token", "wall", "--file", tokens))
	operate := strings.TrimSpace(fleet("fleet", "token", "anna", "--role", "operate", "--file", tokens))
	s := serveActions(t, dir, server.URL(), tokens)
	get := func(path, token string) string {
		t.Helper()
		_, text := s.do(http.MethodGet, path, nil, "Cookie", s.cookie(token), "Accept", "text/html")
		return text
	}
	await(t, "the node is shown", func() bool { return strings.Contains(get("nodes/web01", operate), "Run now") })

	// Who only reads sees no button, and cannot act.
	one := s.confirmed("actions/pause", operate, url.Values{"node": {"web01"}, "until": {"2h"}, "reason": {"<b>disk</b> is replaced"}})
	if text := get("nodes/web01", read); strings.Contains(text, "Run now") || strings.Contains(text, "/actions/pause") {
		t.Error("who only reads sees buttons")
	}
	if text := get("actions/pause?node=web01", read); !strings.Contains(text, "wall may only read: that needs the role operate") || strings.Contains(text, "<form class=\"card") {
		t.Errorf("who only reads is asked: %s", text)
	}
	if r, text := s.form("actions/pause", read, one); r.StatusCode != http.StatusForbidden || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") || text != "wall may only read: that needs the role operate\n" {
		t.Errorf("who only reads: %s %s", r.Status, text)
	}
	if status, problem := s.call("actions/pause", read, `{"target":{"nodes":["web01"]}}`); status != http.StatusForbidden || problem["detail"] != "wall may only read: that needs the role operate" {
		t.Errorf("who only reads, by the API: %d %v", status, problem)
	}
	// A page of another site cannot act in the browser of an operator.
	for _, from := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example.net"}} {
		if r, _ := s.form("actions/pause", operate, one, from...); r.StatusCode != http.StatusForbidden {
			t.Errorf("%v: %s", from, r.Status)
		}
	}
	if text := fleet("fleet", "nodes"); strings.Contains(text, "paused") {
		t.Fatalf("somebody paused it: %s", text)
	}

	// A browser is redirected to the results of the action.
	if text := get("actions/pause?node=web01", operate); !strings.Contains(text, "<strong class=\"num\">1 node</strong>") || !strings.Contains(text, "Pause 1 node") {
		t.Errorf("it asks %s", text)
	}
	r, text := s.form("actions/pause", operate, one)
	if r.StatusCode != http.StatusOK || !strings.Contains(r.Request.URL.Path, "/actions/") || !strings.Contains(text, "&lt;b&gt;disk&lt;/b&gt; is replaced") || strings.Contains(text, "<b>disk") {
		t.Errorf("the result: %s %s %s", r.Status, r.Request.URL, text)
	}
	await(t, "the result has the word of the node", func() bool { return strings.Contains(get(r.Request.URL.Path[1:], operate), "1 of 1 node paused") })
	if text := fleet("fleet", "nodes"); !strings.Contains(text, "by anna (dashboard): <b>disk</b> is replaced") {
		t.Errorf("the node: %s", text)
	}
	await(t, "the page of the node has the way back", func() bool { return strings.Contains(get("nodes/web01", operate), "Resume") })

	// A paused node refuses to run, but for what changes nothing.
	if err := os.WriteFile(motd, []byte("drifted"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, a := s.call("actions/run", operate, `{"target":{"nodes":["web01"]}}`); status != http.StatusAccepted || !strings.Contains(fmt.Sprint(a["results"]), "refused, the node changes nothing now: paused until") {
		t.Errorf("run of a paused node: %d %v", status, a)
	}
	if status, a := s.call("actions/run", operate, `{"target":{"nodes":["web01"]},"noop":true}`); status != http.StatusAccepted || !strings.Contains(fmt.Sprint(a["results"]), "would change") {
		t.Errorf("noop: %d %v", status, a)
	}
	if status, a := s.call("actions/resume", operate, `{"target":{"on":"state == \"paused\""},"expect":1}`); status != http.StatusAccepted || a["ended"] == nil || !strings.Contains(fmt.Sprint(a["results"]), "state:done") {
		t.Errorf("resume: %d %v", status, a)
	}
	await(t, "it repairs what drifted", func() bool { text, err := os.ReadFile(motd); return err == nil && string(text) == "hello" })

	// Run now leads to the run.
	r, _ = s.form("actions/run", operate, s.confirmed("actions/run", operate, url.Values{"on": {`group("web")`}, "manifests": {"motd"}}))
	await(t, "the result has the run", func() bool {
		return regexp.MustCompile(`1 of 1 node ran[^}]*href="/runs/web01/`).MatchString(get(r.Request.URL.Path[1:], operate))
	})
	await(t, "the requests have who asked", func() bool { return strings.Contains(get("requests", read), "by anna") })
	if log := s.process.text.String(); !regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\S+ INFO  action started .*by=anna `).MatchString(log) {
		t.Errorf("the log has no time of the action: %s", log)
	}
	if text := get("actions", read); !strings.Contains(text, "anna") {
		t.Errorf("the actions: %s", text)
	}
	if text := strings.ReplaceAll(get("audit/nodes", read), "<wbr>", ""); !strings.Contains(text, "node.web01.pause") || !strings.Contains(text, "anna (dashboard)") {
		t.Errorf("the audit: %s", text)
	}
	if _, text := s.do(http.MethodGet, "api/v1/audit/nodes?search=anna", nil, "Authorization", "Bearer "+read); !regexp.MustCompile(`"key":"node.web01.pause",[^}]*"kind":"resumed","by":"anna \(dashboard\)"`).MatchString(text) {
		t.Errorf("the audit, by the API: %s", text)
	}
	if text := get("audit", read); !regexp.MustCompile(`group\.web\.motd[^%]*\w+@`).MatchString(text) {
		t.Errorf("the audit of assignments: %s", text)
	}
	// A preview changes nothing, and assigns nothing.
	r, text = s.form("actions/preview", operate, url.Values{"on": {`group("web")`}, "name": {"motd"}, "manifest": {strings.Replace(manifest, "hello", "<b>new</b>", 1)}})
	await(t, "the result has the plan", func() bool {
		text = get(r.Request.URL.Path[1:], operate)
		return strings.Contains(text, "Would change") && strings.Contains(text, "+&lt;b&gt;new&lt;/b&gt;")
	})
	if text, err := os.ReadFile(motd); err != nil || string(text) != "hello" {
		t.Errorf("after the preview: %s, %v", text, err)
	}
	if status, a := s.call("actions/preview", operate, `{"target":{"nodes":["web01"]},"key":"group.web.motd"}`); status != http.StatusAccepted || !strings.Contains(fmt.Sprint(a["plans"]), "outcome:no change") {
		t.Errorf("of what is assigned: %d %v", status, a)
	}
	// So it is with a bundle.
	bundle := filepath.Join(dir, "site")
	if err := os.Mkdir(bundle, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(bundle, "manifest.yaml"), strings.Replace(manifest, "content: hello", "source: page", 1))
	write(t, filepath.Join(bundle, "page"), "a page of a bundle")
	fleet("fleet", "push", "--group", "web", "--name", "motd", "--wait", bundle)
	if status, a := s.call("actions/preview?wait=50", operate, `{"target":{"nodes":["web01"]},"key":"group.web.motd"}`); status != http.StatusAccepted || !strings.Contains(fmt.Sprint(a["plans"]), "outcome:no change") {
		t.Errorf("of a bundle: %d %v", status, a)
	}
	if status, a := s.call("actions/preview?wait=50", operate, `{"target":{"nodes":["web01"]},"key":"group.web.motd","revision":1}`); status != http.StatusAccepted || !strings.Contains(fmt.Sprint(a["plans"]), "outcome:would change") {
		t.Errorf("of the revision before: %d %v", status, a)
	}
	s.process.signal(syscall.SIGINT)
	if code, text := s.process.wait(); code != 0 || !strings.Contains(text, "by=anna") || strings.Contains(text, operate) {
		t.Errorf("exit code %d: %s", code, text)
	}

	// Without --actions the server refuses every action.
	off := start(t, dir, "--server", server.URL(), "fleet", "serve", "--listen", "127.0.0.1:0", "--tokens", tokens)
	await(t, "it prints its address", func() bool { return strings.Contains(off.text.String(), "http://") })
	s = &site{t: t, process: off, address: strings.TrimSpace(off.text.String())}
	if r, text := s.form("actions/pause", operate, one); r.StatusCode != http.StatusForbidden || !strings.Contains(text, "start muster fleet serve with --actions") {
		t.Errorf("without --actions: %s %s", r.Status, text)
	}
	if status, problem := s.call("actions/resume", operate, `{"target":{"nodes":["web01"]}}`); status != http.StatusForbidden || !strings.Contains(fmt.Sprint(problem["detail"]), "--actions") {
		t.Errorf("without --actions, by the API: %d %v", status, problem)
	}
	off.signal(syscall.SIGINT)
	off.wait()
}

// TestSignedActions: nodes that require signatures refuse the unsigned actions of serve, and serve reports
// it. They accept signed actions. Previews are signed only on request, because their guards run arbitrary
// commands.
func TestSignedActions(t *testing.T) {
	server := natstest.Start(t)
	dir := t.TempDir()
	fleet := func(args ...string) string {
		t.Helper()
		return muster(t, dir, append([]string{"--server", server.URL()}, args...)...)
	}
	fleet("fleet", "init", "--yes")
	key := filepath.Join(dir, "anna.nk")
	public := regexp.MustCompile(`O[A-Z2-7]{55}`).FindString(fleet("trust", "key", "new", key))
	config := write(t, filepath.Join(dir, "agent.yaml"), "node: web01\ntrust:\n  keys:\n  - {key: "+public+", name: anna}\n")
	agent := start(t, filepath.Join(dir, "node"), "--server", server.URL(), "agent", "run", "--config", config)
	t.Cleanup(func() { agent.signal(syscall.SIGINT); agent.wait() })
	tokens := filepath.Join(dir, "tokens")
	token := strings.TrimSpace(fleet("fleet", "token", "anna", "--role", "operate", "--file", tokens))
	const node = `{"target":{"nodes":["web01"]}}`
	ran := filepath.Join(dir, "ran")
	for _, more := range [][]string{nil, {"--sign-key", key}, {"--sign-key", key, "--sign-previews"}} {
		s := serveActions(t, dir, server.URL(), tokens, more...)
		await(t, "the node is known", func() bool {
			_, text := s.do(http.MethodGet, "api/v1/nodes", nil, "Authorization", "Bearer "+token)
			return strings.Contains(text, `"state":"no-manifest"`)
		})
		for _, verb := range []string{"pause", "resume", "run", "preview"} {
			document, signed, remedy := node, len(more) > 0, "start muster fleet serve with --sign-key FILE"
			if verb == "preview" {
				document = `{"target":{"nodes":["web01"]},"name":"evil","manifest":"muster: {resources: [{exec: [{/bin/true: {onlyif: /bin/touch ` + ran + `}}]}]}"}`
				signed, remedy = len(more) > 2, "--sign-previews"
			}
			status, a := s.call("actions/"+verb+"?wait=50", token, document)
			all := fmt.Sprint(a)
			if !signed && verb == "resume" {
				continue // there is no pause that it would end
			}
			if status != http.StatusAccepted || signed == strings.Contains(all, "not signed") || signed == strings.Contains(all, remedy) || signed != strings.Contains(all, "state:done") {
				t.Errorf("%s, %v: %d %s", verb, more, status, all)
			}
			if _, err := os.Stat(ran); (err == nil) != (signed && verb == "preview") {
				t.Errorf("%s, %v: its guard ran: %v", verb, more, err == nil)
			}
		}
		s.process.signal(syscall.SIGINT)
		s.process.wait()
	}
}

// TestActionsWithoutAnAdministrator: serve with what `muster fleet permissions NAME --serve --actions --requests
// run,preview` prints does all that an administrator's does; without requests it pauses and resumes, and says why no more.
func TestActionsWithoutAnAdministrator(t *testing.T) {
	server := natstest.Start(t, natstest.WithConfig(kvtest.AccountsConfig(t)))
	as := func(user string) string {
		return strings.Replace(server.URL(), "://", "://"+user+":"+user+"@", 1)
	}
	dir := t.TempDir()
	fleet := func(args ...string) string {
		t.Helper()
		return muster(t, dir, append([]string{"--server", as("admin")}, args...)...)
	}
	fleet("fleet", "init", "--yes")
	motd := filepath.Join(dir, "motd")
	manifest := fmt.Sprintf("muster: {resources: [{file: [{%s: {content: hello, owner: \"%d\", group: \"%d\", mode: \"0600\"}}]}]}", motd, os.Geteuid(), os.Getegid())
	agent := start(t, filepath.Join(dir, "node"), "--server", as("web01"), "agent", "run", "--node", "web01", "--group", "web")
	t.Cleanup(func() {
		agent.signal(syscall.SIGINT)
		if _, text := agent.wait(); strings.Contains(text, "denied") {
			t.Errorf("the agent: %s", text)
		}
	})
	await(t, "the node is known", func() bool { return strings.Contains(fleet("fleet", "nodes"), "web01") })
	bundle := filepath.Join(dir, "site")
	if err := os.Mkdir(bundle, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(bundle, "manifest.yaml"), strings.Replace(manifest, "content: hello", "source: page", 1))
	write(t, filepath.Join(bundle, "page"), "hello")
	fleet("fleet", "push", "--group", "web", "--name", "motd", "--wait", write(t, filepath.Join(dir, "motd.yaml"), manifest))
	fleet("fleet", "push", "--group", "web", "--name", "motd", "--wait", bundle)
	tokens := filepath.Join(dir, "tokens")
	token := strings.TrimSpace(fleet("fleet", "token", "anna", "--role", "operate", "--file", tokens))
	get := func(s *site, path string) string {
		t.Helper()
		_, text := s.do(http.MethodGet, path, nil, "Cookie", s.cookie(token), "Accept", "text/html")
		return text
	}
	const node = `{"target":{"nodes":["web01"]}}`
	confirmed := func(s *site, verb string) {
		t.Helper()
		if status, a := s.call("actions/"+verb+"?wait=50", token, node); status != http.StatusAccepted || !strings.Contains(fmt.Sprint(a["results"]), "state:done") {
			t.Errorf("%s: %d %v", verb, status, a)
		}
	}

	s := serveActions(t, dir, as(kvtest.Requester), tokens, "--inbox-prefix", "_INBOX_"+kvtest.Requester)
	await(t, "the node is shown", func() bool { return strings.Contains(get(s, "nodes/web01"), "Run now") })
	confirmed(s, "pause")
	confirmed(s, "resume")
	if err := os.WriteFile(motd, []byte("drifted"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ := s.form("actions/run", token, s.confirmed("actions/run", token, url.Values{"node": {"web01"}}))
	await(t, "the result has the run", func() bool {
		return regexp.MustCompile(`1 of 1 node ran[^}]*href="/runs/web01/`).MatchString(get(s, r.Request.URL.Path[1:]))
	})
	if text, err := os.ReadFile(motd); err != nil || string(text) != "hello" {
		t.Errorf("after the run: %s, %v", text, err)
	}
	r, _ = s.form("actions/preview", token, url.Values{"node": {"web01"}, "name": {"motd"}, "manifest": {strings.Replace(manifest, "hello", "a new one", 1)}})
	await(t, "the result has the plan", func() bool {
		text := get(s, r.Request.URL.Path[1:])
		return strings.Contains(text, "Would change") && strings.Contains(text, "+a new one")
	})
	for of, want := range map[string]string{`"key":"group.web.motd"`: "outcome:no change", `"key":"group.web.motd","revision":1`: "outcome:no change"} {
		if status, a := s.call("actions/preview?wait=50", token, `{"target":{"nodes":["web01"]},`+of+`}`); status != http.StatusAccepted || !strings.Contains(fmt.Sprint(a["plans"]), want) {
			t.Errorf("preview of %s: %d %v", of, status, a)
		}
	}
	s.process.signal(syscall.SIGINT)
	if code, text := s.process.wait(); code != 0 || strings.Contains(text, "not permitted") || strings.Contains(text, "WARN") {
		t.Errorf("exit code %d: %s", code, text)
	}

	s = serveActions(t, dir, as(kvtest.Dashboard), tokens, "--inbox-prefix", "_INBOX_"+kvtest.Dashboard)
	await(t, "the node is shown", func() bool { return strings.Contains(get(s, "nodes/web01"), "/actions/pause") })
	if text := get(s, "nodes/web01"); strings.Contains(text, "Run now") {
		t.Error("there is a button that does nothing")
	}
	confirmed(s, "pause")
	confirmed(s, "resume")
	for _, kind := range []string{"run", "preview"} {
		document := strings.TrimSuffix(node, "}") + `,"name":"x","manifest":"muster: {resources: []}"}`
		if kind == "run" {
			document = node
		}
		if status, problem := s.call("actions/"+kind, token, document); status != http.StatusUnprocessableEntity || !strings.Contains(fmt.Sprint(problem["detail"]), "muster fleet permissions NAME --serve --requests run,preview") {
			t.Errorf("%s: %d %v", kind, status, problem)
		}
	}
	s.process.signal(syscall.SIGINT)
	if code, text := s.process.wait(); code != 0 || strings.Contains(text, "WARN") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
