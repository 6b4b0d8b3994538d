package servecmd

import (
	"encoding/json"
	"net/http"

	"github.com/musterfleet/muster/fleet/web"
)

// newHandler serves the overview as JSON.
func newHandler(model web.Model, _ web.Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(model.Overview()) // the reader left
	})

	return mux
}
