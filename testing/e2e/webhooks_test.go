package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/musterfleet/muster/testing/natstest"
)

// posted contains the deliveries to webhooks in order, by the path of their URL.
type posted struct {
	mu  sync.Mutex
	all map[string][]string
}

// ServeHTTP takes a report: its outcome, of what.
func (p *posted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var event struct {
		Type string
		Data struct {
			Name, Manifest   string
			Refused, Changed bool
			Error            []string
			Counts           struct{ Changed, Failed, Unmet int }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	outcome := "stable"
	switch d := event.Data; {
	case d.Refused:
		outcome = "refused"
	case d.Counts.Failed > 0 || d.Counts.Unmet > 0 || len(d.Error) > 0:
		outcome = "failed"
	case d.Changed || d.Counts.Changed > 0:
		outcome = "changed"
	}
	_, manifest, _ := strings.Cut(strings.TrimPrefix(event.Data.Manifest, "group."), ".")
	what := strings.Join(strings.Fields(outcome+" "+manifest+" "+filepath.Base(filepath.Dir(event.Data.Name))), " ")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[r.URL.Path] = append(p.all[r.URL.Path], strings.TrimSuffix(what, " ."))
	w.WriteHeader(http.StatusNoContent)
}

// of returns the deliveries to a path.
func (p *posted) of(path string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()

	return slices.Clone(p.all[path])
}

// TestWebhooksOfTheGuide: the pager of the guide gets one report of a resource that fails at every retry, and
// one of a rejected manifest. The tickets also get the recovery.
func TestWebhooksOfTheGuide(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	dir := t.TempDir()
	fleet := func(args ...string) string {
		t.Helper()
		return muster(t, dir, append([]string{"--server", server.URL()}, args...)...)
	}
	fleet("fleet", "init", "--yes")
	got := &posted{all: map[string][]string{}}
	receiver := httptest.NewServer(got)
	t.Cleanup(receiver.Close)
	guide := find(t, docsPage(t, "guides/webhooks.md"), "yml", "").Text
	guide = regexp.MustCompile(`https://[a-z.]+/`).ReplaceAllString(guide, receiver.URL+"/")
	secret := write(t, filepath.Join(dir, "secret"), "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n")
	guide = regexp.MustCompile(`/etc/muster/\w+\.secret`).ReplaceAllString(guide, secret)
	hooks := write(t, filepath.Join(dir, "webhooks.yaml"), guide)
	for _, path := range []string{secret, hooks} {
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serving := start(t, dir, "--server", server.URL(), "fleet", "serve", "--listen", "127.0.0.1:0", "--webhooks", hooks)
	await(t, "it serves", func() bool { return strings.Contains(serving.text.String(), "http://127.0.0.1:") })
	await(t, "the webhooks read", func() bool {
		js := server.Connect(t)
		defer js.Close()
		for _, name := range []string{"pager", "rejected", "tickets"} {
			if m, err := js.Request("$JS.API.CONSUMER.INFO.MUSTER_REPORTS.webhook-"+name, nil, deadline); err != nil || strings.Contains(string(m.Data), `"error"`) {
				return false
			}
		}
		return true
	})
	start(t, filepath.Join(dir, "node"), "--server", server.URL(), "agent", "run", "--node", "web01", "--group", "web")

	push := func(name, what string) {
		fleet("fleet", "push", "--group", "web", "--name", name, write(t, filepath.Join(dir, name+".yaml"), what))
	}
	file := func(parent string) string {
		return fmt.Sprintf("muster: {resources: [{file: [{%s/%s/x: {content: x, owner: \"%d\", group: \"%d\", mode: \"0600\"}}]}]}", dir, parent, os.Geteuid(), os.Getegid())
	}
	push("motd", file("missing"))
	await(t, "it fails at three runs", func() bool { return len(got.of("/tickets")) >= 3 })
	if err := os.Mkdir(filepath.Join(dir, "missing"), 0o755); err != nil {
		t.Fatal(err)
	}
	await(t, "the tickets are told that it is over", func() bool { return slices.Contains(got.of("/tickets"), "changed motd") })
	all := got.of("/tickets")
	if before := all[:slices.Index(all, "changed motd")]; slices.ContainsFunc(before, func(what string) bool { return what != "failed motd" }) {
		t.Errorf("tickets %q", all)
	}
	push("bad", `muster: {resources: [{file: [{/x: {content: "${ Facts.hostnaem }", owner: root, group: root, mode: "0600"}}]}]}`)
	push("other", file("gone"))
	await(t, "the pager is told of both", func() bool { return len(got.of("/muster")) == 2 && len(got.of("/rejected")) == 1 })
	if pager, rejected := got.of("/muster"), got.of("/rejected"); !slices.Equal(pager, []string{"failed motd missing", "failed other gone"}) || !slices.Equal(rejected, []string{"refused bad"}) {
		t.Errorf("pager %q, rejected %q", pager, rejected)
	}
}
