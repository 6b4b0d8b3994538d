package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/webhook"
)

// noticeFor is for how long it is shown that a stream was created again.
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

// newFollower returns a follower. run starts it.
func newFollower(o Options) *follower {
	o.CheckEvery = cmp.Or(o.CheckEvery, streamPause)

	return &follower{Options: o, begun: make(chan struct{})}
}

// ServeHTTP answers with the view of now.
func (f *follower) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	<-f.begun
	(*f.handler.Load()).ServeHTTP(w, r)
}

// run follows the fleet until ctx ends, whose error it returns.
func (f *follower) run(ctx context.Context) error {
	for again := (*recreatedError)(nil); ; {
		err := f.follow(ctx, again)
		if !errors.As(err, &again) {
			return err
		}
		f.Log.Warn(again.Error() + ": starting over")
	}
}

// follow follows the fleet with a view of which nothing is known but that a stream was created
// again, nil for none, until ctx or the view is over, and with it the streams that show it.
func (f *follower) follow(ctx context.Context, again *recreatedError) error {
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	model := view.New(view.Options{Version: f.Version, Keep: f.Keep, Facts: f.Store.Nodes.Facts, Inventories: f.Store.Nodes.Inventories})
	if again != nil {
		model.SetNotice(fmt.Sprintf("%v, as seen at %s: %s", again, clock(time.Now()), again.gone))
		defer time.AfterFunc(noticeFor, func() { model.SetNotice("") }).Stop()
	}
	executor := f.executor(model)
	if executor != nil {
		defer executor.Close()
	}
	source := newGated(newSource(f.Store, f.Log))
	source.away = f.Store.Connection.Away
	h := newHandler(ctx, model, source, f.Options, executor)
	if f.handler.Swap(&h) == nil {
		close(f.begun)
	}
	running.Go(func() { model.Run(ctx) })

	feed := newFeed(f.Store, model, f.Keep, f.Log)
	feed.look = f.CheckEvery
	show := func(name string) webhook.Notices { return model.Webhook(name) }
	for _, c := range f.Webhooks.Couriers(f.Store.Reports, show, f.Log, again != nil && again.reports) {
		running.Go(func() { feed.persistFor(ctx, c.Show, "reports for "+c.About(), c.Deliver) })
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
