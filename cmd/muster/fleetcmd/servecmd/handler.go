package servecmd

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/fleet/web/metrics"
	"github.com/musterfleet/muster/fleet/webhook"
)

// newHandler serves the dashboard, and beside it the API, metrics and the services that nodes
// register. Streams end with ctx.
func newHandler(ctx context.Context, model *view.Fleet, source web.Source, acts *ask.Executor, webhooks func() map[string]webhook.Counts, log *slog.Logger) http.Handler {
	figures := metrics.New(metrics.Sources{Overview: model.Overview, Totals: model.Totals, Webhooks: webhooks, Version: cli.Version(), Log: log})
	mux := http.NewServeMux()
	asked := within(ctx, api.New(api.Options{Model: model, Source: source, Actions: acts, Log: log}))
	mux.Handle(api.Root, asked)
	mux.Handle(api.Root+"/", asked)
	mux.Handle("GET /metrics", figures.Handler())
	mux.Handle("GET /sd/registrations", metrics.Discovery(source, log))
	mux.Handle("/", web.New(web.Options{Model: model, Source: source, Log: log, Version: cli.Version(), Done: ctx.Done(), Actions: acts}))

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
