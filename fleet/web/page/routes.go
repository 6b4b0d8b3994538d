package page

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
)

// maxPart is the maximum number of bytes of a name in a URL. Names are not longer.
const maxPart = 512

// at returns the URL of a path with a query. It escapes each part.
func at(query url.Values, parts ...string) templ.SafeURL {
	path := ""
	for _, p := range parts {
		path += "/" + url.PathEscape(p[:min(len(p), maxPart)])
	}
	if path == "" {
		path = "/"
	}
	if text := query.Encode(); text != "" {
		path += "?" + text
	}

	return templ.SafeURL(path)
}

// maxExpression is the maximum number of bytes of a value in a URL. Target expressions are not longer.
const maxExpression = 8 << 10

// values returns a query of names and values, without empty values.
func values(pairs ...string) url.Values {
	out := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := pairs[i+1]; v != "" {
			out.Set(pairs[i], v[:min(len(v), maxExpression)])
		}
	}

	return out
}

// NodeURL returns the page of a node.
func NodeURL(name string) templ.SafeURL { return at(nil, "nodes", name) }

// requestURL returns the page of a request. A run request and another request may have the same id.
func requestURL(id string, run bool) templ.SafeURL { return at(ofRun(run), "requests", id) }

func requestDataURL(id string, run bool) templ.SafeURL {
	return at(ofRun(run), "api", "v1", "requests", id)
}

func ofRun(run bool) url.Values {
	if !run {
		return nil
	}

	return values("run", "true")
}

func factsURL(name string) templ.SafeURL { return at(nil, "nodes", name, "facts") }

func manifestURL(name string) templ.SafeURL { return ManifestURL(name, nil) }

// ManifestURL returns the page of a manifest, with a query.
func ManifestURL(name string, query url.Values) templ.SafeURL { return at(query, "manifests", name) }

func manifestStatusURL(name string, status fleet.Status) templ.SafeURL {
	return at(values("status", string(status)), "manifests", name)
}

func runURL(node, id string) templ.SafeURL { return at(nil, "runs", node, id) }

// AuditURL returns the page of the history of an assignment.
func AuditURL(key string) templ.SafeURL { return at(nil, "audit", key) }

func stateURL(state fleet.Status) templ.SafeURL {
	return at(values("state", string(state)), "nodes")
}

// NodesURL returns the page of nodes of a query.
func NodesURL(q view.NodeQuery) templ.SafeURL {
	v := values("on", q.On, "q", q.Search, "state", string(q.State), "sort", strings.TrimPrefix(q.Sort, WorstFirst), "offset", offset(q.Offset))
	if q.Descending {
		v.Set("desc", "1")
	}

	return at(v, "nodes")
}

// EventsURL returns the page of events of a query.
func EventsURL(q view.EventQuery) templ.SafeURL {
	v := values("node", q.Node, "kind", q.Kind, "manifest", q.Manifest, "run", q.RunID, "outcome", string(q.Outcome), "cause", string(q.Cause), "q", q.Search)
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	if q.Before > 0 {
		v.Set("before", strconv.FormatUint(q.Before, 10))
	}

	return at(v, "events")
}

func offset(n int) string {
	if n <= 0 {
		return ""
	}

	return strconv.Itoa(n)
}

// nameOf returns the manifest name of a key, and any other text unchanged.
func nameOf(key string) string {
	if _, name, err := fleet.ParseKey(key); err == nil {
		return name
	}

	return key
}

// Frame is the frame of a page.
type Frame struct {
	// Title is the title of the document, Section the selected part of the menu.
	Title, Section string
	// Stream is the URL of the updates, empty for none.
	Stream string
	// Asset returns the path of an asset by its name.
	Asset func(name string) string
	// Version is the version of muster, Now the time of the server.
	Version string
	Now     time.Time
	// User is the signed-in user, empty for none. Acts means that the server permits actions, Operates that the user
	// may act.
	User           string
	Acts, Operates bool
}

type section struct{ name, path, icon string }

func (f Frame) sections() []section {
	out := []section{
		{"Overview", "/", "overview"}, {"Nodes", "/nodes", "nodes"}, {"Manifests", "/manifests", "manifests"}, {"Events", "/events", "events"},
		{"Requests", "/requests", "requests"}, {"Registrations", "/registrations", "registrations"}, {"Audit", "/audit", "audit"},
	}
	if f.Operates {
		out = append(out, section{"Previews", "/actions/preview", "preview"})
	}
	if f.Acts {
		out = append(out, section{"Actions", "/actions", "actions"})
	}

	return out
}

// settings configure htmx: no evaluation, no data in the browser, no requests to other sites.
const settings = `{"allowEval":false,"includeIndicatorStyles":false,"historyCacheSize":0,"refreshOnHistoryMiss":true,"selfRequestsOnly":true,"scrollIntoViewOnBoost":false}`
