package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
)

const (
	// maxConnections and patience limit the descriptors that users of the machine can occupy.
	maxConnections = 8
	patience       = 5 * time.Second
	// maxScrapes limits concurrent scrapes. Further ones get 503.
	maxScrapes = 2
	// shutdownGrace limits a scrape after the agent ends.
	shutdownGrace = time.Second
)

// Server serves metrics. Create it with ListenMetrics.
type Server struct {
	listener net.Listener
	http     *http.Server
	log      *slog.Logger
}

// ListenMetrics opens an address for metrics in the form of net.Listen. It creates a missing directory of a socket,
// replaces the socket of a killed process, and sets its mode to 0660.
func ListenMetrics(ctx context.Context, disk Disk, network, address string, m *Metrics) (*Server, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		return nil, err
	}
	l, err := listen(ctx, disk, network, address)
	if err != nil {
		return nil, fmt.Errorf("metrics.listen: %w", err)
	}
	debug := slog.NewLogLogger(m.sources.Log.Handler(), slog.LevelDebug)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: debug, DisableCompression: true, MaxRequestsInFlight: maxScrapes}))
	server := &http.Server{Handler: mux, ReadTimeout: patience, WriteTimeout: patience, MaxHeaderBytes: 16 << 10, ErrorLog: debug}
	server.SetKeepAlivesEnabled(false)

	return &Server{listener: netutil.LimitListener(l, maxConnections), http: server, log: m.sources.Log}, nil
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) {
	s.log.InfoContext(ctx, "serving metrics", "listen", s.listener.Addr().String())
	serving, stop := context.WithCancel(ctx)
	var shutdown sync.WaitGroup
	defer shutdown.Wait()
	defer stop()
	shutdown.Go(func() {
		<-serving.Done()
		late, end := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer end()
		if s.http.Shutdown(late) != nil {
			_ = s.http.Close() // whoever still reads is not waited for
		}
	})
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.log.ErrorContext(ctx, "metrics are not served any more", "error", err)
	}
}
