package servecmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
)

// noticeFor is for how long it is shown that a stream was created again.
const noticeFor = time.Hour

// follower keeps a view of a fleet up to date and serves it: another view, which begins with
// nothing, once a stream of it was created again.
type follower struct {
	store *kvstore.Store
	keep  time.Duration
	// look is how often it is looked whether that was so.
	look     time.Duration
	webhooks *webhooks
	// acts is that operators act, signed by signer where that is not nil; signsPreviews is that it
	// signs previews too.
	acts, signsPreviews bool
	signer              *assign.Signing
	log                 *slog.Logger
	// handler serves the view of now; begun is closed when there is one.
	handler atomic.Pointer[http.Handler]
	begun   chan struct{}
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
		f.log.Warn(again.Error() + ": starting over")
	}
}

// follow follows the fleet with a view of which nothing is known but that a stream was created
// again, nil for none, until ctx or the view is over, and with it the streams that show it.
func (f *follower) follow(ctx context.Context, again *recreatedError) error {
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	bucket := kvstore.NewNodes(f.store)
	model := view.New(view.Options{Version: cli.Version(), Keep: f.keep, Facts: bucket.Facts, Inventories: bucket.Inventories})
	if again != nil {
		model.SetNotice(fmt.Sprintf("%v, as seen at %s: %s", again, clock(time.Now()), again.gone))
		defer time.AfterFunc(noticeFor, func() { model.SetNotice("") }).Stop()
	}
	executor := f.executor(model)
	if executor != nil {
		defer executor.Close()
	}
	asked := newGated(newSource(f.store, f.log))
	asked.away = f.store.Away
	h := newHandler(ctx, model, asked, executor, f.webhooks.figures.All, f.log)
	if f.handler.Swap(&h) == nil {
		close(f.begun)
	}
	running.Go(func() { model.Run(ctx) })

	feed := newFeed(f.store, model, f.keep, f.log)
	feed.look = f.look
	show := func(webhook string) warnings { return model.Webhook(webhook) }
	for _, c := range f.webhooks.couriers(feed.reports, show, f.log, again != nil && again.reports) {
		running.Go(func() { feed.persistFor(ctx, c.show, "reports for "+c.about(), c.deliver) })
	}

	return feed.run(ctx)
}

// executor returns what does what operators order, nil where nobody acts.
func (f *follower) executor(model *view.Fleet) *ask.Executor {
	if !f.acts {
		return nil
	}
	paused := func(node string) string {
		n, known := model.State(node)
		if !known || n.Paused == nil {
			return ""
		}
		return n.Paused.From
	}

	return ask.NewExecutor(ask.ExecutorOptions{Model: model, Backend: backend{store: f.store, signer: f.signer, signsPreviews: f.signsPreviews, log: f.log, paused: paused, permitted: newPermitted(f.store)}, Away: f.store.Away, Log: f.log})
}
