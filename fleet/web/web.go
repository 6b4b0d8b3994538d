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

// Options are what the dashboard is made of.
type Options struct {
	Model  Model
	Source Source
	// Log is told what cannot be shown because of an error, never what somebody asks for wrongly.
	Log *slog.Logger
	// Version is that of muster, which pages show.
	Version string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Done ends all streams when it is closed, as before a shutdown of the server, which would
	// wait for them. Nil never does.
	Done <-chan struct{}
	// Actions does what operators want; nil is that nobody acts.
	Actions *ask.Executor
}

// New returns the dashboard. It answers every path: who serves more mounts that beside it.
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
	// streams has a place for each stream that is open.
	streams *access.Places
	// sparse logs a few of the pages that cannot be shown: whoever reads may ask for as many as they like.
	sparse telemetry.RateLimitedLog
}

// policy permits what the dashboard itself serves, and nothing else: no script or style within a
// page, and no other site that has it in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded sets the headers by which browsers protect whoever looks at the dashboard.
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

// sameOrigin refuses what pages of other sites send. What came through access.Guard was looked at there,
// by one that knows the name of a proxy.
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

// compressed compresses what is larger than a packet.
func compressed(h http.Handler) http.Handler { return gzhttp.GzipHandler(h) }

// frame returns what is around a page.
func (s *site) frame(title, section string) page.Frame {
	return page.Frame{Title: title, Section: section, Asset: s.assets.Path, Version: s.Version}
}
