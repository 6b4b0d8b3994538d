// Package serve keeps a view of a fleet current from NATS, and serves it over HTTP: the dashboard, the API, metrics and
// webhooks.
package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/fleet/web/api"
	"github.com/musterfleet/muster/fleet/web/metrics"
	"github.com/musterfleet/muster/fleet/webhook"
)

// noticeFor is how long a notice about a recreated stream stays.
const noticeFor = time.Hour

// Options configure Run.
type Options struct {
	Store Store
	// Keep is how far back the view shows what happened.
	Keep time.Duration
	// CheckEvery is the time between checks of the streams, 10 s by default.
	CheckEvery time.Duration
	Webhooks   *webhook.Webhooks
	// Backend, if set, returns what carries out the actions of operators. paused returns the control key that pauses a
	// node, empty for none.
	Backend func(paused func(node string) string) ask.Backend
	// Version is the version of muster.
	Version string
	Log     *slog.Logger
}

// follower keeps a view of a fleet up to date and serves it. It starts with an empty view again when a stream was
// created again.
type follower struct {
	Options
	// handler serves the current view; begun is closed when there is one.
	handler atomic.Pointer[http.Handler]
	begun   chan struct{}
}

func newFollower(o Options) *follower {
	return &follower{Options: o, begun: make(chan struct{})}
}

// ServeHTTP answers from the current view.
func (f *follower) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	<-f.begun
	(*f.handler.Load()).ServeHTTP(w, r)
}

// run follows the fleet until ctx ends, and returns the error of ctx.
func (f *follower) run(ctx context.Context) error {
	return restart(f.Log, func(again *recreatedError) error { return f.follow(ctx, again) })
}

// restart calls follow again after a *recreatedError, with that error. It returns any other error.
func restart(log *slog.Logger, follow func(again *recreatedError) error) error {
	for again := (*recreatedError)(nil); ; {
		err := follow(again)
		if !errors.As(err, &again) {
			return err
		}
		log.Warn(again.Error() + ": starting over")
	}
}

const (
	// showPause is the minimum time between two calls of show, agePause the maximum time: ages change without a signal.
	showPause = 500 * time.Millisecond
	agePause  = 10 * time.Second
)

// Watch calls show with the overview of a fleet, and again after changes, until ctx ends, show returns an error or the
// connection is closed. It reads no reports. It returns the cause of the end, or the error of the first list of nodes or
// assignments.
func Watch(ctx context.Context, store Store, version string, log *slog.Logger, show func(view.Summary) error) error {
	_, nodesErr := store.Nodes.Nodes(ctx)
	_, assignmentsErr := store.Assignments.List(ctx)
	if err := cmp.Or(nodesErr, assignmentsErr); err != nil {
		return err
	}

	return restart(log, func(*recreatedError) error {
		ctx, stop := context.WithCancelCause(ctx)
		var showing sync.WaitGroup
		defer showing.Wait()
		defer stop(nil)
		model := view.New(view.Options{Version: version})
		feed := newFeed(store, model, 0, log)
		feed.omitsReports = true
		showing.Go(func() { model.Run(ctx) })
		showing.Go(func() { stop(showChanges(ctx, model, show)) })
		showing.Go(func() { stop(awaitClose(ctx, store.Connection)) })

		return feed.run(ctx)
	})
}

// awaitClose returns the error of a closed connection, or the error of ctx when it ends.
func awaitClose(ctx context.Context, c Connection) error {
	for {
		if err := cmp.Or(c.AwaitConnection(ctx), pause(ctx, awayPause)); err != nil {
			return err
		}
	}
}

// showChanges calls show with each overview of a view that knows all nodes, until ctx ends or show returns an error.
func showChanges(ctx context.Context, model *view.Fleet, show func(view.Summary) error) error {
	changed, cancel := model.Changes()
	defer cancel()
	for {
		if progress := model.Progress(); progress.Nodes {
			s := model.Overview().Summary
			s.Incomplete = append(slices.Clip(s.Incomplete), progress.Problems...)
			if err := show(s); err != nil {
				return err
			}
		}
		if err := pause(ctx, showPause); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-time.After(agePause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow follows the fleet with a new view until ctx ends or the view is obsolete. again is the reason for the new
// view, nil for the first one.
func (f *follower) follow(ctx context.Context, again *recreatedError) error {
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	model := view.New(view.Options{Version: f.Version, Keep: f.Keep, Facts: f.Store.Nodes.Facts, Inventories: f.Store.Nodes.Inventories})
	if again != nil {
		model.SetNotice(again.notice(time.Now()))
		defer time.AfterFunc(noticeFor, func() { model.SetNotice("") }).Stop()
	}
	executor := f.executor(model)
	if executor != nil {
		defer executor.Close()
	}
	h := newHandler(ctx, model, newSource(f.Store, f.Log), f.Options, executor)
	if f.handler.Swap(&h) == nil {
		close(f.begun)
	}
	running.Go(func() { model.Run(ctx) })

	feed := newFeed(f.Store, model, f.Keep, f.Log)
	feed.look = cmp.Or(f.CheckEvery, feed.look)
	show := func(name string) webhook.Notices { return model.Webhook(name) }
	for _, c := range f.Webhooks.Couriers(f.Store.Reports, show, f.Log, again != nil && again.reports) {
		running.Go(func() { feed.persist(ctx, c.Show, "reports for "+c.About(), c.Deliver) })
	}

	return feed.run(ctx)
}

// executor returns what carries out the actions of operators, nil if there is no backend.
func (f *follower) executor(model *view.Fleet) *ask.Executor {
	if f.Backend == nil {
		return nil
	}
	paused := func(node string) string {
		n, known := model.State(node)
		if !known || n.Paused == nil {
			return ""
		}
		return n.Paused.From
	}

	return ask.NewExecutor(ask.ExecutorOptions{Model: model, Backend: f.Backend(paused), Away: f.Store.Connection.Away, Log: f.Log})
}

// newHandler serves the dashboard, the API, metrics and registered services. Streams end with ctx.
func newHandler(ctx context.Context, model *view.Fleet, source api.Source, o Options, acts *ask.Executor) http.Handler {
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

func within(ctx context.Context, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		both, end := context.WithCancel(r.Context())
		defer end()
		defer context.AfterFunc(ctx, end)()
		h.ServeHTTP(w, r.WithContext(both))
	})
}

const (
	// MaxConnections limits the connections, which need no credentials.
	MaxConnections = 1000
	// shutdownGrace is the time for requests to finish at the end.
	shutdownGrace = 3 * time.Second
)

// patience has the maximum times for the header, the body and the answer of a request (except streams), and for an idle
// connection. A connection needs no credentials.
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

// serve answers requests until ctx ends. It is the parent of the contexts of requests.
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
			_ = server.Close() // do not wait for slow readers
		}
	})
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return context.Cause(ctx)
	}

	return err
}

// forBodies limits the time for bodies, also if h does not read them, because the server reads them before it answers.
// The server's own limit for requests would end streams.
func (p patience) forBodies(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// A writer without deadlines, as in tests, does not wait.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.body))
		}
		h.ServeHTTP(w, r)
	})
}
