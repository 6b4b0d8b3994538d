package web

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/web/page"
	"github.com/musterfleet/muster/model/telemetry"
)

// Options configure the dashboard.
type Options struct {
	Model  Model
	Source Source
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

// New returns the dashboard. It answers every path.
func New(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &site{Options: o, assets: newAssets(), fragments: newFragments(o.Now), streams: access.NewPlaces("live pages", maxStreams, ownStreams)}
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
	s.addActions(mux)
	mux.Handle("GET "+assetPrefix, compressed(s.assets))

	return sameOrigin(guarded(mux))
}

// site is the dashboard.
type site struct {
	Options
	assets    *assets
	fragments *fragments
	// streams limits the open streams.
	streams *access.Places
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

// sameOrigin rejects requests from pages of other sites. Requests that access.Guard passed were checked there, with the
// name of a proxy.
func sameOrigin(h http.Handler) http.Handler {
	protected := http.NewCrossOriginProtection().Handler(h)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if access.UserOf(r.Context()).Role != access.None {
			h.ServeHTTP(w, r)
			return
		}
		protected.ServeHTTP(w, r)
	})
}

// compressed compresses answers that are larger than a packet.
func compressed(h http.Handler) http.Handler { return gzhttp.GzipHandler(h) }

// frame returns the frame of a page.
func (s *site) frame(title, section string) page.Frame {
	return page.Frame{Title: title, Section: section, Asset: s.assets.Path, Version: s.Version}
}
