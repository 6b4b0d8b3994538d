package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet/web/access"
)

const (
	// MaxConnections bounds what any user of the machine can have the server keep.
	MaxConnections = 1000
	// shutdownGrace is how long answers may go on at the end.
	shutdownGrace = 3 * time.Second
)

// patience is how long the header and the body of a request may take to arrive and how long its
// answer may take, but for streams, and how long a connection may wait for the next one: whoever has
// a connection needs no credentials to keep it.
type patience struct{ header, body, answer, idle time.Duration }

// defaultPatience returns the timeouts of the server.
func defaultPatience() patience {
	return patience{header: 10 * time.Second, body: 10 * time.Second, answer: time.Minute, idle: 2 * time.Minute}
}

// Run follows a fleet and serves it at a listener until ctx ends. It returns the cause of the end.
func Run(ctx context.Context, l net.Listener, guard *access.Guard, o Options) error {
	ctx, stop := context.WithCancelCause(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer stop(nil)
	f := newFollower(o)
	following.Go(func() { stop(f.run(ctx)) })

	return serve(ctx, l, guard.Handler(f), defaultPatience(), o.Log)
}

// serve answers requests until ctx ends, with which the contexts of requests end too.
func serve(ctx context.Context, l net.Listener, h http.Handler, p patience, log *slog.Logger) error {
	server := &http.Server{
		Handler: p.forBodies(h), ReadHeaderTimeout: p.header, WriteTimeout: p.answer, IdleTimeout: p.idle, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return ctx },
	}
	serving, stop := context.WithCancel(ctx)
	var shutdown sync.WaitGroup
	defer shutdown.Wait()
	defer stop()
	shutdown.Go(func() {
		<-serving.Done()
		late, end := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer end()
		if server.Shutdown(late) != nil {
			_ = server.Close() // whoever still reads is not waited for
		}
	})
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return context.Cause(ctx)
	}

	return err
}

// forBodies bounds how long bodies take, also those that h does not read: the server reads them before
// it answers. Its own limit for whole requests would end streams.
func (p patience) forBodies(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// A writer without deadlines is one that does not wait, as in a test.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.body))
		}
		h.ServeHTTP(w, r)
	})
}
