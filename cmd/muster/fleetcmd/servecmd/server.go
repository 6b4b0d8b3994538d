package servecmd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// maxConnections bounds what any user of the machine can have the server keep.
	maxConnections = 1000
	// headerPatience is how long a request may take to arrive, idlePatience how long a connection
	// may wait for the next one.
	headerPatience = 10 * time.Second
	idlePatience   = 2 * time.Minute
	// shutdownGrace is how long answers may go on at the end.
	shutdownGrace = 3 * time.Second
)

// serve answers requests until ctx ends, with which the contexts of requests end too.
func serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience, MaxHeaderBytes: 64 << 10,
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
	err := server.Serve(netutil.LimitListener(l, maxConnections))
	if errors.Is(err, http.ErrServerClosed) {
		return context.Cause(ctx)
	}

	return err
}
