package status

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"
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

// Disk creates directories. *host.Host implements it.
type Disk interface {
	// EnsureDirectory reports whether users other than root and the running user may replace files in the
	// directory.
	EnsureDirectory(path string) (shared bool, err error)
}

func listen(ctx context.Context, disk Disk, network, address string) (net.Listener, error) {
	if network == "unix" {
		if err := makeRoom(ctx, disk, address); err != nil {
			return nil, err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, inUse(address)
	case err != nil:
		return nil, fmt.Errorf("%w: choose another address, or leave it out", err)
	case network == "unix":
		if err := permitGroup(address); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}

	return l, nil
}

func inUse(address string) error {
	return fmt.Errorf("another process listens on %s: end it, or choose another address", address)
}

// makeRoom creates the directory of a socket, and removes the socket of a killed process.
func makeRoom(ctx context.Context, disk Disk, path string) error {
	dir := filepath.Dir(path)
	shared, err := disk.EnsureDirectory(dir)
	if err != nil {
		return err
	}
	if shared {
		return fmt.Errorf("other users may replace files in %s: choose a directory that belongs to root and that other users cannot write to", dir)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket: remove it, or choose another path", path)
	}
	c, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(inUse(path), c.Close())
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	default:
		return fmt.Errorf("%w: remove it, or choose another path", err)
	}
}

// permitGroup allows the group of a socket to connect. The group comes from a directory with the setgid bit.
// It never changes the mode of another file at the path.
func permitGroup(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return fmt.Errorf("%s was replaced: choose a directory that only root may write to", path)
	}

	return os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o660)
}
