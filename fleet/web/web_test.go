package web_test

import (
	"compress/gzip"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/webfleet"
)

// dashboard returns the dashboard of a fleet.
func dashboard(f *webfleet.Fleet) http.Handler {
	return web.New(web.Options{Model: f, Source: f, Version: webfleet.Version})
}

func sample(nodes int) *webfleet.Fleet {
	return webfleet.New(webfleet.Sample(nodes, time.Now()), time.Now)
}

// get asks for a page.
func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))

	return w
}

// has fails unless a page has some texts.
func has(t *testing.T, h http.Handler, path string, status int, texts ...string) string {
	t.Helper()
	w := get(t, h, path)
	if w.Code != status {
		t.Errorf("%s: status %d, want %d", path, w.Code, status)
	}
	body := w.Body.String()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%s has no %q", path, text)
		}
	}

	return body
}

// pages are the pages of a sample with their expected content.
var pages = map[string][]string{
	"/":                                            {"of 500", "nodes are OK", "Needs attention", "nginx failed on", "warm-cache", "nginx pending on", "still at revision", "flaps", "clocks differ", "Reports wait on", "that something is wrong with", "group.canary is not permitted", "Over time", "<rect", "Versions", "older than this server", "varnish", "now on 14 nodes", "none known now", "64 reports"},
	"/nodes":                                       {"500 nodes", "db001", "db001.fra1.example.net", "rack=b2", "Failed <b>", "Next</a>", "1–50 of 500"},
	"/nodes/web003":                                {"web003.fra1.example.net", "group.web.nginx", "exit code 7", "/runs/" + webfleet.FailedRun, "1 critical", "agrees with the NATS server", "Show facts"},
	"/nodes/web003/facts":                          {"facts.host.info.platform", "&#34;debian&#34;", "facts.network.dns[0]"},
	"/manifests":                                   {"nginx", "postgres", "still at revision", "6 manifests"},
	"/manifests/nginx":                             {"nodes are up to date", "exit code 7", "still at revision", "<th scope=\"col\" class=\"right\">For</th>"},
	"/manifests/nginx?tab=assignments":             {"group web"},
	"/manifests/nginx?tab=errors":                  {"exit code 7"},
	"/manifests/nginx?tab=runs":                    {"Runs, the newest first", `aria-current="page"`},
	"/events?since=2026-01-02T03:04":               {`value="2026-01-02T03:04"`},
	"/runs/" + webfleet.FailedRun:                  {"exec#/usr/local/bin/warm-cache --all", "curl: (7) Failed to connect", "group.web.nginx:18:11", "  18          - /usr/local/bin/warm-cache --all:", `class="add">+listen 8080;`, `class="del">-listen 80;`, "only 2 of 4 workers answer", "4.8", "0600", "0644"},
	"/events":                                      {"web003", "Pause", "Older", "drift, repaired in 38ms", "100 events"},
	"/requests":                                    {"service#nginx", "req-7c1f", "300", "anna@desk", "of 305 nodes", "not known", `href="/requests/req-7c1f">5 without answer`},
	"/requests/req-7c1f":                           {"service#nginx", "anna@desk", "300 nodes", "of 305", "group(&#34;web&#34;) || group(&#34;db&#34;)", "5 nodes without an answer", `href="/nodes/web003"`, "/api/v1/requests/req-7c1f"},
	"/requests/req-66d0":                           {"uptime", "Not known: the sender did not say how many", "--resume ID"},
	"/registrations":                               {"12 registrations", "10.20.0.10:8080", "postgresql"},
	"/audit":                                       {"12 changes", "group.<wbr>web.<wbr>nginx", "node db006", "anna@desk", "not known", `href="/audit/group.web.nginx#revision-1054"`, "these are all"},
	"/audit/group.web.nginx":                       {"Revision 1054", `id="revision-1054"`, "Revision 1023", "-  port: 80", "+  port: 8080", "The oldest"},
	"/nodes?state=failed":                          {`aria-current="true"`, "of 500 nodes"},
	"/nodes?on=group(%22db%22)":                    {"100 of 500 nodes", "db001", "offset=50"},
	"/nodes?q=web003":                              {"1 of 500 nodes"},
	"/nodes?sort=heard&desc=1":                     {`aria-sort="descending"`},
	"/nodes?offset=50":                             {"51–100 of 500", "Previous"},
	"/manifests/nginx?status=failed":               {`aria-current="true"`},
	"/events?outcome=failed&kind=run":              {"No event matches"},
	"/events?kind=health":                          {"Health check: Warning"},
	"/events?kind=helth":                           {"No event matches", `<option value="helth" selected>helth</option>`},
	"/events?outcome=warning":                      {"Health check: Warning", `<option value="warning" selected>warning</option>`},
	"/events?before=184200":                        {"Resume the feed", "Paused"},
	"/events?q=req-7c1f":                           {"restarted the service"},
	"/registrations?q=postgres":                    {"4 registrations"},
	"/manifests?q=SSH":                             {"1 manifest<", "sshd"},
	"/audit?q=node.":                               {"2 changes<", "node.db006.tuning"},
	"/audit?q=BOB":                                 {"4 changes", "group.all.sshd"},
	"/audit/group.all.sshd":                        {"by bob@ops1, "},
	"/nodes/web003/facts?q=EPYC":                   {"facts.cpu.model", `<h2 class="wraps break">`},
	"/runs/" + webfleet.FailedRun + "?show=failed": {"1 resource<", "warm-cache"},
}

// TestPages: each page has its content and security headers, and is small.
func TestPages(t *testing.T) {
	t.Parallel()
	h := dashboard(sample(500))
	for path, texts := range pages {
		has(t, h, path, http.StatusOK, texts...)
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if size := w.Body.Len(); size > 60_000 || w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d bytes, encoded as %q", path, size, w.Header().Get("Content-Encoding"))
		}
		for name, want := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		unpacked, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		if inline := regexp.MustCompile(`<style|style="|<script>|\son[a-z]+="`).FindString(string(body)); inline != "" {
			t.Errorf("%s has %q within it", path, inline)
		}
	}
}

// TestLinksLeadSomewhere: every link of every page leads to a page that there is, or was reported and is gone.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	h := dashboard(sample(12))
	link := regexp.MustCompile(`(?:href|src|sse-connect|action)="([^"]*)"`)
	seen, todo := map[string]bool{}, []string{"/"}
	for len(todo) > 0 && len(seen) < 200 {
		path := todo[0]
		todo = todo[1:]
		w := get(t, h, path)
		gone := strings.HasPrefix(path, "/runs/")
		if w.Code != http.StatusOK && !(gone && w.Code == http.StatusNotFound) {
			t.Errorf("%s: status %d", path, w.Code)
		}
		for _, m := range link.FindAllStringSubmatch(w.Body.String(), -1) {
			to := strings.ReplaceAll(m[1], "&amp;", "&")
			if strings.HasPrefix(to, "#") {
				continue
			}
			if u, err := url.Parse(to); err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") {
				t.Errorf("%s leads to %q", path, to)
			} else if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d links", len(seen))
	}
}

// TestEmptyFleet: pages without anything to show say what to do.
func TestEmptyFleet(t *testing.T) {
	t.Parallel()
	empty := webfleet.Data{}
	empty.Progress.Nodes, empty.Progress.LastRuns, empty.Progress.History = true, true, true
	h := dashboard(webfleet.New(empty, time.Now))
	for path, text := range map[string]string{
		"/": "muster agent run", "/nodes": "muster agent run", "/manifests": "muster fleet push", "/events": "muster fleet ensure", "/requests": "muster fleet ensure",
		"/registrations": "register_when_stable", "/audit": "muster fleet push", "/nodes?q=x": "muster agent run",
	} {
		has(t, h, path, http.StatusOK, text, `class="empty"`)
	}
	one := sample(1)
	one.Change(func(d *webfleet.Data) { d.Nodes[0].Manifests, d.Entries, d.Runs, d.Events = nil, nil, nil, nil })
	h = dashboard(one)
	has(t, h, "/", http.StatusOK, "Everything is in its desired state", "muster fleet push")
	has(t, h, "/nodes/web000", http.StatusOK, "Nothing is assigned to this node", "muster fleet push --node web000", "No run is known", "No event is known")
	has(t, h, "/nodes?q=zzz", http.StatusOK, "No node matches", "--on")
	has(t, h, "/manifests?q=zzz", http.StatusOK, "No manifest has that name")
	has(t, h, "/audit?q=zzz", http.StatusOK, "No change has that")
	has(t, h, "/registrations?q=zzz", http.StatusOK, "No registration has that")
	has(t, h, "/nodes/web000/facts?q=zzz", http.StatusOK, "No fact has that")
}

// TestAuditHasWhatWasRemoved with its author, beside the assignments and values that no node reads.
func TestAuditHasWhatWasRemoved(t *testing.T) {
	t.Parallel()
	f := sample(5)
	f.Change(func(d *webfleet.Data) {
		now := time.Now()
		d.Revisions["group.web.gone"] = []model.Entry{
			{Key: "group.web.gone", Revision: 2001, Time: now.Add(-time.Hour), By: "anna@desk"}, {Key: "group.web.gone", Revision: 2002, Time: now, Deleted: true, By: "mallory@desk"},
		}
		d.Revisions["stray"] = []model.Entry{{Key: "stray", Revision: 2003, Time: now, Invalid: true}}
		d.Revisions["group.web.forged"] = []model.Entry{{Key: "group.web.forged", Revision: 2004, Time: now, Refused: "it was forged"}}
		for i := range 100 {
			d.Revisions["group.all.many"] = append(d.Revisions["group.all.many"], model.Entry{Key: "group.all.many", Revision: uint64(3000 + i), Time: now.Add(-time.Minute)})
		}
	})
	h := dashboard(f)
	has(t, h, "/audit", http.StatusOK, "116 changes", "Removed", "mallory@desk", `href="/audit/group.web.gone#revision-2002"`, "its key is not node.", "it was forged", `href="/audit?offset=`)
	if text := has(t, h, "/audit?q=removed", http.StatusOK, "1 change<", "mallory@desk"); strings.Contains(text, "anna@desk") {
		t.Error("what was assigned is among what was removed")
	}
	if text := has(t, h, "/audit", http.StatusOK); strings.Contains(text, `href="/audit/stray`) {
		t.Error("a key without a history has a link to it")
	}
}

// TestAKeyLeadsToItsManifest: commands print keys, and take them for names.
func TestAKeyLeadsToItsManifest(t *testing.T) {
	t.Parallel()
	h := dashboard(sample(20))
	w := get(t, h, "/manifests/group.web.nginx?status=failed")
	if at := w.Header().Get("Location"); w.Code != http.StatusFound || at != "/manifests/nginx?status=failed" {
		t.Errorf("%d to %q", w.Code, at)
	}
	has(t, h, "/manifests/group.web.gone", http.StatusNotFound, "There is no manifest", `href="/audit/group.web.gone"`, "Show its history")
}

// TestEventsOfAnUnassignedManifest tests that the link of an event to a manifest leads to a page after the end of its
// assignment.
func TestEventsOfAnUnassignedManifest(t *testing.T) {
	t.Parallel()
	f := sample(5)
	f.Change(func(d *webfleet.Data) {
		d.Events = append(d.Events, view.Event{Seq: 1, Node: "web001", Kind: model.KindRun, Manifest: "group.web.newone", Outcome: model.OutcomeChanged, Text: "1 of 2 changed"})
	})
	h := dashboard(f)
	has(t, h, "/events?manifest=newone", http.StatusOK, `href="/manifests/newone"`)
	for _, name := range []string{"newone", "group.web.newone"} {
		has(t, h, "/manifests/"+name, http.StatusOK, "Not assigned", "1 of 2 changed", `href="/nodes/web001"`, `href="/audit?q=`+name+`"`, `href="/events?manifest=`+name+`"`)
	}
}

// TestEventsByTheWordOfThePage: the page's word "rejected" finds its events.
func TestEventsByTheWordOfThePage(t *testing.T) {
	t.Parallel()
	f := sample(5)
	f.Change(func(d *webfleet.Data) {
		d.Events = append(d.Events, view.Event{Seq: 1, Node: "web001", Kind: model.KindRun, Outcome: model.OutcomeRefused, Text: "that is no property"})
	})
	has(t, dashboard(f), "/events?outcome=rejected", http.StatusOK, "that is no property", `<option value="refused" selected>Rejected`)
}

// tags are the elements of a page, blanks what separates words in it.
var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	blanks = regexp.MustCompile(`\s+`)
)

// wordsOf returns what a page says.
func wordsOf(body string) string {
	return html.UnescapeString(blanks.ReplaceAllString(tags.ReplaceAllString(body, ""), " "))
}

// TestNoBlankBeforeAComma is in any page.
func TestNoBlankBeforeAComma(t *testing.T) {
	t.Parallel()
	h := dashboard(sample(500))
	blank := regexp.MustCompile(`.{0,40} [,;.]( .{0,20}|$)`)
	for path := range pages {
		for _, part := range strings.Split(get(t, h, path).Body.String(), "<pre") {
			if found := blank.FindString(wordsOf(part)); found != "" {
				t.Errorf("%s has %q", path, found)
			}
		}
	}
}

// TestOneNode has the words for one.
func TestOneNode(t *testing.T) {
	t.Parallel()
	f := sample(5)
	f.Change(func(d *webfleet.Data) {
		n := d.Nodes[0]
		n.Silent = true
		d.Nodes = []model.Node{n}
	})
	text := wordsOf(get(t, dashboard(f), "/").Body.String())
	for _, want := range []string{"0 of 1 node is OK", "1 node is unreachable", "not seen lately; is its agent running, and connected to NATS?"} {
		if !strings.Contains(text, want) {
			t.Errorf("without %q: %s", want, text)
		}
	}
	f.Change(func(d *webfleet.Data) { d.Nodes = append(d.Nodes, d.Nodes[0]); d.Nodes[1].Node = "web999" })
	has(t, dashboard(f), "/", http.StatusOK, "2 nodes are unreachable", "not seen lately; are their agents running, and connected to NATS?")
}

// TestAnnotationsThatShareALabel: the page says which of them Prometheus gets.
func TestAnnotationsThatShareALabel(t *testing.T) {
	t.Parallel()
	f := sample(5)
	f.Change(func(d *webfleet.Data) {
		d.Registrations[0].Annotations = map[string]string{"a.b": "1", "a_b": "2", "c": "3"}
	})
	text := has(t, dashboard(f), "/registrations", http.StatusOK, "of a.b, a_b Prometheus gets a.b only")
	if n := strings.Count(text, "Prometheus gets"); n != 1 {
		t.Errorf("%d rows say so", n)
	}
}

// TestIncomplete: missing data and problems are shown on the affected pages.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	f := sample(20)
	h := dashboard(f)
	for _, c := range []struct {
		change func(*webfleet.Data)
		text   string
	}{
		{func(d *webfleet.Data) { d.Progress.History = false }, "The history is still being read"},
		{func(d *webfleet.Data) { d.Progress.LastRuns = false }, "The last runs are still being read"},
		{func(d *webfleet.Data) { d.Progress.Nodes = false }, "The nodes are still being read"},
		{func(d *webfleet.Data) { d.Progress.Problems = []string{"NATS cannot be reached since 03:04"} }, "NATS cannot be reached since 03:04"},
	} {
		f.Change(c.change)
		h = dashboard(f)
		for _, path := range []string{"/", "/nodes", "/nodes/web000", "/manifests", "/manifests/nginx", "/events", "/requests"} {
			// The shown data is outdated, so a browser does not call it live.
			if body := has(t, h, path, http.StatusOK, c.text); strings.Contains(body, "data-stale") != strings.Contains(body, "NATS cannot") {
				t.Errorf("%s: whether it is current: %s", path, body)
			}
		}
	}
	has(t, h, "/nodes/nope", http.StatusNotFound, "still being read")
	f.Change(func(d *webfleet.Data) {
		d.Progress.Incomplete = []string{"Older ones are not counted: web000 (run stable)."}
	})
	h = dashboard(f)
	for _, path := range []string{"/", "/nodes/web000", "/manifests/nginx", "/events"} {
		has(t, h, path, http.StatusOK, "Older ones are not counted: web000 (run stable).")
	}
	has(t, h, "/", http.StatusOK, "These lists do not count all reports")
}

// TestWebhooksHaveOneNotice on the overview, however many are not delivered.
func TestWebhooksHaveOneNotice(t *testing.T) {
	t.Parallel()
	f := sample(20)
	f.Change(func(d *webfleet.Data) {
		for i := range 7 {
			d.Webhooks = append(d.Webhooks, view.WebhookProblem{Webhook: fmt.Sprint("w", i), Problem: fmt.Sprintf("webhook w%d cannot be delivered", i)})
		}
	})
	h := dashboard(f)
	body := has(t, h, "/", http.StatusOK, "webhook w0 cannot be delivered", "webhook w4 cannot be delivered", "and 2 more problems of webhooks")
	if n := strings.Count(body, `class="notice`); n != 1 {
		t.Errorf("%d notices", n)
	}
	if body := has(t, h, "/nodes", http.StatusOK); strings.Contains(body, "webhook w0") {
		t.Error("a page that is not about webhooks names one")
	}
}

// TestSinceWhen: what fails, or is away, says for how long, on the overview and where it is listed.
func TestSinceWhen(t *testing.T) {
	t.Parallel()
	f := sample(100)
	failed, away := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2020, 1, 2, 6, 7, 8, 0, time.UTC)
	f.Change(func(d *webfleet.Data) {
		for i := range d.Nodes {
			if d.Nodes[i].Silent {
				d.Nodes[i].Heard = away
			}
			for key, m := range d.Nodes[i].Manifests {
				if m.Outcome == model.OutcomeFailed {
					m.FailedSince = failed
					d.Nodes[i].Manifests[key] = m
				}
			}
		}
	})
	h := dashboard(f)
	has(t, h, "/", http.StatusOK, `title="since 2020-01-02 03:04:05 UTC"`, `title="since 2020-01-02 06:07:08 UTC"`)
	has(t, h, "/manifests/nginx?status=failed", http.StatusOK, `title="since 2020-01-02 03:04:05 UTC"`)
	if body := has(t, h, "/nodes/web003", http.StatusOK); strings.Count(body, `title="since 2020-01-02 03:04:05 UTC"`) < 2 {
		t.Error("the manifest of a node that fails says nothing of for how long")
	}
}

// TestOnlyTheVersionOfTheServerIsInOrder: versions cannot be compared with a build without a number.
func TestOnlyTheVersionOfTheServerIsInOrder(t *testing.T) {
	t.Parallel()
	f := sample(20)
	f.Change(func(d *webfleet.Data) {
		d.Version = "(devel)"
		d.Nodes[0].Version = "(devel)"
		d.Nodes[1].Version = "0.1.0"
	})
	body := has(t, dashboard(f), "/", http.StatusOK, "0.1.0", "Another one than this server&#39;s")
	if n := strings.Count(body, "That of this server"); n != 1 {
		t.Errorf("%d versions are that of the server", n)
	}
}

// TestTermsOfAssignments are where assignments are listed: an expired one looks like any other else.
func TestTermsOfAssignments(t *testing.T) {
	t.Parallel()
	f := sample(20)
	f.Change(func(d *webfleet.Data) {
		for i := range d.Entries {
			if strings.HasSuffix(d.Entries[i].Key, ".nginx") {
				d.Entries[i].Terms = &model.Terms{Noop: true, Expires: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), When: "a < b", Priority: 3, Signed: true}
				all := d.Revisions[d.Entries[i].Key]
				all[len(all)-1].Terms = d.Entries[i].Terms
			}
		}
	})
	h := dashboard(f)
	for _, path := range []string{"/manifests/nginx?tab=assignments", "/audit/group.web.nginx", "/audit?q=group.web.nginx"} {
		has(t, h, path, http.StatusOK, "expired 2020-01-02 03:04:05 UTC, noop, priority 3, signed, when a &lt; b")
	}
	if text := get(t, h, "/audit?q=group.web.nginx").Body.String(); strings.Count(text, "noop, priority 3") != 1 || strings.Count(text, `href="/audit/group.web.nginx#`) < 2 {
		t.Error("a revision that is not in force has the terms of the one that is")
	}
}

// TestPendingHasAReasonAndAnAge also where a node gives no reason.
func TestPendingHasAReasonAndAnAge(t *testing.T) {
	t.Parallel()
	h := dashboard(sample(100))
	for _, path := range []string{"/nodes?state=pending", "/manifests/nginx?status=pending", "/"} {
		has(t, h, path, http.StatusOK, "still at revision 1023", `data-as="age"`, ">47m<")
	}
}

// TestUnknown: pages of missing objects link to existing ones.
func TestUnknown(t *testing.T) {
	t.Parallel()
	h := dashboard(sample(5))
	for path, text := range map[string]string{
		"/nodes/nope": `href="/nodes?q=nope"`, "/nodes/nope/facts": `href="/nodes?q=nope"`, "/manifests/nope": `href="/manifests"`, "/runs/web000/nope": `href="/events?node=web000"`,
		"/audit/nope": `href="/audit"`, "/nope": `href="/"`, "/assets/nope.js": "404",
	} {
		has(t, h, path, http.StatusNotFound, text)
	}
	for _, path := range []string{"/nodes", "/manifests", "/manifests/nginx", "/audit"} {
		has(t, h, path+"?offset=9223372036854775807&state=x&sort=x&status=x", http.StatusOK)
		has(t, h, path+"?offset=-1&offset=x", http.StatusOK)
		has(t, h, path+"?q="+strings.Repeat("x", 40_000), http.StatusRequestURITooLong)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/nodes", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", w.Code)
	}
}

// TestExpressions: a problem of a target expression shows its position and marks the field.
func TestExpressions(t *testing.T) {
	t.Parallel()
	h := dashboard(sample(10))
	body := has(t, h, "/nodes?on="+url.QueryEscape(`state == "faild"`), http.StatusOK, `aria-invalid="true"`, "at column ", "state == &#34;faild&#34;\n", "^</pre>", `value="state == &#34;faild&#34;"`)
	if strings.Contains(body, "<table") {
		t.Error("nodes are listed although nobody knows which")
	}
	has(t, h, "/nodes?on=group(", http.StatusOK, `aria-invalid="true"`)
	if strings.Contains(has(t, h, "/nodes?on="+url.QueryEscape(`facts.cpu.count > 4`), http.StatusOK, "of 10 nodes"), `aria-invalid`) {
		t.Error("an expression that is right is marked")
	}
}

// TestSourceFails: errors of NATS are shown, and the rest of the dashboard works.
func TestSourceFails(t *testing.T) {
	t.Parallel()
	f := sample(5)
	f.Change(func(d *webfleet.Data) { d.Err = io.ErrUnexpectedEOF })
	h := dashboard(f)
	for _, path := range []string{"/registrations", "/audit", "/nodes/web000/facts", "/runs/" + webfleet.FailedRun, "/audit/group.web.nginx"} {
		has(t, h, path, http.StatusServiceUnavailable, "This cannot be shown now", "unexpected EOF")
	}
	has(t, h, "/", http.StatusOK)
}

// TestPagesThatFailFillNoLog: users may request any number of them.
func TestPagesThatFailFillNoLog(t *testing.T) {
	t.Parallel()
	f := sample(5)
	f.Change(func(d *webfleet.Data) { d.Err = io.ErrUnexpectedEOF })
	var log strings.Builder
	h := web.New(web.Options{Model: f, Source: f, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range 30 {
		get(t, h, "/runs/web000/"+strconv.Itoa(i))
	}
	if n := strings.Count(log.String(), "cannot show a page"); n != 10 {
		t.Errorf("%d lines", n)
	}
}

// TestAssets: a browser may keep them, because their path is of their content.
func TestAssets(t *testing.T) {
	t.Parallel()
	h := dashboard(sample(1))
	all := regexp.MustCompile(`"(/assets/[^"]*\.[0-9a-f]{12}\.(css|js|svg))"`).FindAllStringSubmatch(has(t, h, "/", http.StatusOK), -1)
	if len(all) != 7 {
		t.Errorf("%d assets", len(all))
	}
	for _, m := range all {
		w := get(t, h, m[1])
		if w.Code != http.StatusOK || w.Body.Len() == 0 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, %d bytes, %v", m[1], w.Code, w.Body.Len(), w.Header())
		}
	}
}

// TestCompleteSaysNothing: after all data is read, no page reports missing data, including a run, which is
// read on request.
func TestCompleteSaysNothing(t *testing.T) {
	t.Parallel()
	h := dashboard(sample(30))
	for _, path := range []string{"/", "/nodes", "/nodes/web003", "/manifests/nginx", "/runs/" + webfleet.FailedRun, "/events"} {
		if body := has(t, h, path, http.StatusOK); strings.Contains(body, "incomplete") {
			t.Errorf("%s says that it is incomplete", path)
		}
	}
}

// TestNodesWithoutAManifest tests that they do not count as OK, and that nodes are sorted worst first.
func TestNodesWithoutAManifest(t *testing.T) {
	t.Parallel()
	now := time.Now()
	node := func(name string, outcome model.Outcome) model.Node {
		n := model.Node{NodeState: model.NodeState{Node: name, Manifests: map[string]model.ManifestState{}}, Heard: now}
		if outcome != "" {
			n.Groups = []string{"web"}
			n.Manifests["group.web.motd"] = model.ManifestState{Revision: 7, Outcome: outcome, At: now}
		}
		return n
	}
	f := webfleet.New(webfleet.Data{
		Progress: view.Progress{Nodes: true, LastRuns: true, History: true},
		Nodes:    []model.Node{node("a-idle", ""), node("b-fine", model.OutcomeStable), node("c-failed", model.OutcomeFailed)},
		Entries:  []model.Entry{{Key: "group.web.motd", Revision: 7, Time: now}},
	}, time.Now)
	h := dashboard(f)
	has(t, h, "/", http.StatusOK, "1 of 3", `href="/nodes?state=no-manifest"`)
	body := has(t, h, "/nodes", http.StatusOK, "No manifest", `aria-sort="ascending"`)
	if failed, idle := strings.Index(body, `href="/nodes/c-failed"`), strings.Index(body, `href="/nodes/a-idle"`); failed < 0 || failed > idle {
		t.Error(body)
	}
	for _, path := range []string{"/nodes?state=no-manifest", "/nodes?on=state+%3D%3D+%22no-manifest%22"} {
		if body := has(t, h, path, http.StatusOK, `href="/nodes/a-idle"`); strings.Contains(body, `href="/nodes/b-fine"`) || strings.Contains(body, `href="/nodes/c-failed"`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	if body := has(t, h, "/nodes?state=ok", http.StatusOK, `href="/nodes/b-fine"`, `href="/nodes?state=no-manifest"`); strings.Contains(body, `href="/nodes/a-idle"`) {
		t.Error(body)
	}
	if body := has(t, h, "/nodes?sort=name", http.StatusOK); strings.Index(body, `href="/nodes/c-failed"`) < strings.Index(body, `href="/nodes/a-idle"`) {
		t.Error(body)
	}
}

// TestTimeRanges tests the time ranges of the audit and the chart.
func TestTimeRanges(t *testing.T) {
	t.Parallel()
	h := dashboard(sample(40))
	all := has(t, h, "/audit", http.StatusOK, "/audit/group.")
	has(t, h, "/audit?since=2100-01-01T00:00", http.StatusOK, `value="2100-01-01T00:00"`)
	for _, path := range []string{"/audit?since=2100-01-01T00:00", "/audit?until=2000-01-01T00:00", "/audit/nodes?since=2100-01-01T00:00"} {
		if body := get(t, h, path).Body.String(); strings.Contains(body, `href="/audit/group.`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	if body := get(t, h, "/audit?since=2000-01-01T00:00&until=2100-01-01").Body.String(); strings.Count(body, `href="/audit/group.`) != strings.Count(all, `href="/audit/group.`) {
		t.Error(body)
	}
	bars := func(path string) int { return strings.Count(get(t, h, path).Body.String(), "<g><title>") }
	if whole, hour := bars("/"), bars("/?last=1h"); hour == 0 || hour >= whole || bars("/?last=nonsense") != whole {
		t.Errorf("%d columns, %d of an hour", whole, hour)
	}
}
