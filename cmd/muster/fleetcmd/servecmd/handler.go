package servecmd

import (
	"log/slog"
	"net/http"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/fleet/web/metrics"
)

// newHandler serves the dashboard, and beside it the API, metrics and the services that nodes
// register. Streams end when done is closed.
func newHandler(model *view.Fleet, source web.Source, log *slog.Logger, done <-chan struct{}) http.Handler {
	figures := metrics.New(metrics.Sources{Overview: model.Overview, Totals: model.Totals, Version: cli.Version(), Log: log})
	mux := http.NewServeMux()
	mux.Handle(api.Prefix+"/", api.New(api.Options{Model: model, Source: source, Log: log}))
	mux.Handle("GET /metrics", figures.Handler())
	mux.Handle("GET /sd/registrations", metrics.Discovery(source, log))
	mux.Handle("/", web.New(web.Options{Model: model, Source: source, Log: log, Version: cli.Version(), Done: done}))

	return mux
}
