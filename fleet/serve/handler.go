package serve

import (
	"context"
	"net/http"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/fleet/web/metrics"
)

// newHandler serves the dashboard, and beside it the API, metrics and the services that nodes
// register. Streams end with ctx.
func newHandler(ctx context.Context, model *view.Fleet, source web.Source, o Options, acts *ask.Executor) http.Handler {
	figures := metrics.New(metrics.Sources{Overview: model.Overview, Totals: model.Totals, Webhooks: o.Webhooks.Figures, Version: o.Version, Log: o.Log})
	mux := http.NewServeMux()
	asked := within(ctx, api.New(api.Options{Model: model, Source: source, Actions: acts, Log: o.Log}))
	mux.Handle(api.Root, asked)
	mux.Handle(api.Root+"/", asked)
	mux.Handle("GET /metrics", figures.Handler())
	mux.Handle("GET /sd/registrations", metrics.Discovery(source, o.Log))
	mux.Handle("/", web.New(web.Options{Model: model, Source: source, Log: o.Log, Version: o.Version, Done: ctx.Done(), Actions: acts}))

	return mux
}

// within ends requests with ctx.
func within(ctx context.Context, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		both, end := context.WithCancel(r.Context())
		defer end()
		defer context.AfterFunc(ctx, end)()
		h.ServeHTTP(w, r.WithContext(both))
	})
}
