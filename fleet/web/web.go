// Package web serves the dashboard of a fleet, with live updates. It gets data from the read model (fleet/view), and
// from sources that it reads when a page needs them. It does not use NATS.
package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/klauspost/compress/gzhttp"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

// Model is the known fleet, and signals its changes.
type Model interface {
	api.Model
	// Changes returns a channel that signals possible changes, at most a few times a second, until cancel. Slow readers
	// miss no change, because a signal has no content.
	Changes() (changed <-chan struct{}, cancel func())
}

// Options configure the dashboard.
type Options struct {
	Model  Model
	Source api.Source
	// Log receives errors that prevent a page, but not errors of requests.
	Log *slog.Logger
	// Version is the version of muster that pages show.
	Version string
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Done ends all streams when it is closed, before a shutdown of the server. It may be nil.
	Done <-chan struct{}
	// Actions carries out actions of operators; nil forbids them.
	Actions *ask.Executor
}

// New returns the dashboard. It answers every path, and expects an access.Guard in front of it.
func New(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &site{Options: o, assets: newAssets(), fragments: newFragments(o.Now), streams: access.NewQuota("live pages", maxStreams, ownStreams)}
	mux := http.NewServeMux()
	for pattern, build := range map[string]builder{
		"GET /{$}":                s.overview,
		"GET /nodes":              s.nodes,
		"GET /nodes/{node}":       s.node,
		"GET /nodes/{node}/facts": s.facts,
		"GET /manifests":          s.manifests,
		"GET /runs/{node}/{run}":  s.run,
		"GET /events":             s.events,
		"GET /requests":           s.requests,
		"GET /requests/{id}":      s.request,
		"GET /registrations":      s.registrations,
		"GET /audit":              s.audit,
		"GET /audit/nodes":        s.control,
		"GET /audit/{key}":        s.history,
		"GET /":                   s.missing,
	} {
		mux.Handle(pattern, s.serve(build))
	}
	mux.Handle("GET /manifests/{name}", s.byKey(s.serve(s.manifest)))
	actionPages{s}.add(mux)
	mux.Handle("GET "+assetPrefix, compressed(s.assets))

	return guarded(mux)
}

type site struct {
	Options
	assets    *assets
	fragments *fragments
	// streams limits the open streams.
	streams *access.Quota
	// sparse logs failed pages with a rate limit, because users may request any number.
	sparse telemetry.RateLimitedLog
}

// policy permits only content of the dashboard: no inline scripts or styles, and no frames of other sites.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded sets headers that protect the user in the browser.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.ServeHTTP(w, r)
	})
}

func compressed(h http.Handler) http.Handler { return gzhttp.GzipHandler(h) }

func (s *site) frame(title, section string) page.Frame {
	return page.Frame{Title: title, Section: section, Asset: s.assets.Path, Version: s.Version}
}

// content is the live part of a page at a time.
type content struct {
	templ.Component
	// status is the HTTP status.
	status int
	// final is set if the content does not change any more.
	final bool
}

func shown(c templ.Component) (content, error) {
	return content{Component: c, status: http.StatusOK}, nil
}

// screen is a requested page.
type screen struct {
	page.Frame
	// controls are the inputs above the content, which are not updated.
	controls templ.Component
	// content reads and draws, or returns why that fails.
	content func(ctx context.Context, now time.Time) (content, error)
	// live is set if the content is updated.
	live bool
	// pace is the minimum time between updates, 0 for the default.
	pace time.Duration
	// changes signals changes of the content; nil means changes of the fleet.
	changes func() (changed <-chan struct{}, cancel func())
}

type builder func(r *http.Request) screen

// fresh is the maximum age of shared content for a new page, so that many browsers cost as much as one.
const fresh = time.Second

// timeout is the maximum time to draw a page that reads from its source.
const timeout = 10 * time.Second

// maxURL is the maximum length of a URL in bytes, because content is cached by URL. An escaped target expression fits.
const maxURL = 32 << 10

// serve serves a page, and its updates at the same URL as a stream of events.
func (s *site) serve(build builder) http.Handler {
	whole := compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := build(r)
		f, err := s.fragment(r.Context(), r, v, s.Now().Add(-fresh))
		if err != nil {
			return // the browser went away
		}
		v.Now = f.at
		if v.live && f.status == http.StatusOK && !f.final {
			v.Stream = streamURL(r, f)
		}
		w.Header().Add("Vary", "Accept")
		s.write(w, r, f.status, v.Frame, v.controls, f.html)
	}))

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery)+len(r.URL.Path) > maxURL {
			http.Error(w, "the URL is too long", http.StatusRequestURITooLong)
			return
		}
		if !strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream") {
			whole.ServeHTTP(w, r)
			return
		}
		v := build(r)
		if !v.live {
			http.Error(w, "this page is not updated", http.StatusNotFound)
			return
		}
		s.stream(w, r, v)
	})
}

// write answers with a page: a component, and HTML below it.
func (s *site) write(w http.ResponseWriter, r *http.Request, status int, f page.Frame, c templ.Component, html string) {
	f.User, f.Acts, f.Operates = access.UserOf(r.Context()).Name, s.Actions != nil, s.may(r).May
	var out bytes.Buffer
	if err := page.Layout(f, c, html).Render(r.Context(), &out); err != nil {
		s.sparse.Log(r.Context(), s.Log, slog.LevelError, "cannot draw a page", "path", r.URL.Path, "error", err)
		http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// ignore that the browser went away
	_, _ = io.WriteString(w, page.Visible(out.String()))
}

// fragment returns the content of a page, drawn after a time.
func (s *site) fragment(ctx context.Context, r *http.Request, v screen, after time.Time) (fragment, error) {
	return s.fragments.get(ctx, keyOf(r, s.may(r).May), after, func(now time.Time) drawn {
		// Other requests may wait for the content, so it does not end with the first request.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		c, err := v.content(ctx, now)
		if err != nil {
			s.sparse.Log(r.Context(), s.Log, slog.LevelWarn, "cannot show a page", "path", r.URL.Path, "error", err)
			c = content{Component: page.Problem(plain(err)), status: http.StatusServiceUnavailable}
		}
		var out bytes.Buffer
		// After a timeout, the page shows the timeout.
		if err := c.Render(context.WithoutCancel(ctx), &out); err != nil {
			s.sparse.Log(r.Context(), s.Log, slog.LevelError, "cannot draw a page", "path", r.URL.Path, "error", err)
			return drawn{status: http.StatusInternalServerError}
		}

		return drawn{page.Visible(out.String()), c.status, c.final}
	})
}

func plain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "NATS did not answer in time"
	}

	return err.Error()
}

//go:embed assets/*.css assets/*.js assets/*.svg
var assetFiles embed.FS

const assetPrefix = "/assets/"

// assets are the embedded style sheets and scripts. Their paths contain a hash of the content, so browsers may cache
// them forever.
type assets struct {
	paths   map[string]string
	content map[string][]byte
}

func newAssets() *assets {
	a := &assets{paths: map[string]string{}, content: map[string][]byte{}}
	// Embedded files are always readable.
	all, _ := fs.ReadDir(assetFiles, "assets")
	for _, f := range all {
		content, _ := assetFiles.ReadFile("assets/" + f.Name())
		sum := sha256.Sum256(content)
		ext := path.Ext(f.Name())
		at := assetPrefix + strings.TrimSuffix(f.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		a.paths[f.Name()], a.content[at] = at, content
	}

	return a
}

// Path returns the path of a file, empty if there is no such file.
func (a *assets) Path(name string) string { return a.paths[name] }

// ServeHTTP serves the asset at the path of the request.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := a.content[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func nodeQuery(r *http.Request) view.NodeQuery {
	q := r.URL.Query()

	return view.NodeQuery{
		On: strings.TrimSpace(q.Get("on")), Search: searchOf(r), State: fleet.Status(q.Get("state")), Sort: cmp.Or(q.Get("sort"), page.WorstFirst),
		Descending: q.Get("desc") == "1", Offset: offsetOf(r), Limit: page.PageSize,
	}
}

func manifestQuery(r *http.Request) view.ManifestQuery {
	return view.ManifestQuery{Name: r.PathValue("name"), Status: fleet.Status(r.URL.Query().Get("status")), Offset: offsetOf(r), Limit: page.PageSize}
}

func eventQuery(r *http.Request) view.EventQuery {
	q := r.URL.Query()
	// Ignore an invalid number and show the newest events.
	before, _ := strconv.ParseUint(q.Get("before"), 10, 64)

	return view.EventQuery{
		Node: strings.TrimSpace(q.Get("node")), Kind: q.Get("kind"), Manifest: strings.TrimSpace(q.Get("manifest")), RunID: q.Get("run"),
		Outcome: model.OutcomeNamed(q.Get("outcome")), Cause: model.Cause(q.Get("cause")), Search: searchOf(r), Before: before,
		Since: timeOf(q.Get("since")), Until: timeOf(q.Get("until")),
	}
}

func timesOf(r *http.Request) page.Times {
	q := r.URL.Query()

	return page.Times{Since: timeOf(q.Get("since")), Until: timeOf(q.Get("until"))}
}

// timeOf parses a time in RFC 3339, or without a zone in UTC. It returns zero for any other text.
func timeOf(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}

	return time.Time{}
}

// maxOffset is beyond the end of every list.
const maxOffset = 1 << 30

func offsetOf(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Query().Get("offset"))
	if err != nil {
		return 0
	}

	return min(max(n, 0), maxOffset)
}
