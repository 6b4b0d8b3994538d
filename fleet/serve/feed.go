package serve

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

const (
	// firstPause and maxPause are the pauses before something is tried again.
	firstPause = 500 * time.Millisecond
	// afterOutage is for how long after NATS was away the first failure of a reading counts as of that.
	afterOutage = 30 * time.Second
	maxPause    = 30 * time.Second
	// worksAfter is how long something goes on that works: an answer takes less.
	worksAfter = 10 * time.Second
	// awayPause is how often the connection is looked at.
	awayPause = 500 * time.Millisecond
	// listPause is how often nodes are looked for that are no more, and assignments are listed although
	// none has changed.
	listPause = 5 * time.Minute
	// streamPause is the time between checks of the streams, recheckPause the time after a check without a clear result.
	streamPause  = 10 * time.Second
	recheckPause = 2 * time.Second
	// settlePause is how long assignments may change before they are listed again.
	settlePause = 100 * time.Millisecond
	// checkPatience is the maximum time that reading waits for the first check of the streams.
	checkPatience = 5 * time.Second
	// nodesPatience is how long the reports wait for the nodes, which are shown first.
	nodesPatience = 5 * time.Second
)

// feed tells a view what is in NATS.
type feed struct {
	Store
	to   *view.Fleet
	keep time.Duration
	past past
	// look is how often the streams are looked at.
	look time.Duration
	log  *slog.Logger
	// checked is closed after the first check of the streams, listed after the first list of nodes, begun when the
	// newest reports were added.
	checked, listed, begun chan struct{}
	isListed               sync.Once
	isBegun                bool
	// after is the last sequence of the reports that was added, until the first one behind the past
	// that was not added yet.
	after, until uint64
	// block is the part of the past that is being read, zero where none is.
	block block
	// unstored is what the server did not store at the last check.
	unstored fleet.Unstored
	// shares counts what the stream had of each node when this began.
	shares view.Shares
}

func newFeed(store Store, to *view.Fleet, keep time.Duration, log *slog.Logger) *feed {
	return &feed{
		Store: store, to: to, keep: keep, past: past{maxHistory, blockSize}, look: streamPause, log: log,
		checked: make(chan struct{}), listed: make(chan struct{}), begun: make(chan struct{}),
	}
}

// run tells what there is, and then what changes, until ctx ends. It returns a *recreatedError where
// all has to be added anew, and the error of ctx else.
func (f *feed) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	all.Go(func() { f.watchConnection(ctx) })
	all.Go(func() { stop(f.watchStreams(ctx)) })
	// A stream that is created again during the read is noticed only after a check.
	wait(ctx, f.checked, checkPatience)
	all.Go(func() { f.persist(ctx, "nodes", f.listNodes) })
	all.Go(func() {
		wait(ctx, f.listed, nodesPatience)
		f.persist(ctx, "changes of nodes", f.followNodes)
	})
	changed := make(chan struct{}, 1)
	all.Go(func() {
		f.persist(ctx, "assignments", func(ctx context.Context) error { return f.listAssignments(ctx, changed) })
	})
	all.Go(func() {
		f.persist(ctx, "changes of assignments", func(ctx context.Context) error { return f.followAssignments(ctx, changed) })
	})
	all.Go(func() {
		wait(ctx, f.listed, nodesPatience)
		f.persist(ctx, "reports", f.followReports)
	})
	all.Go(func() {
		wait(ctx, f.begun, 0)
		f.persist(ctx, "older reports", f.readHistory)
	})
	all.Go(func() {
		wait(ctx, f.begun, 0)
		f.persist(ctx, "the end of the reports", f.followEnd)
	})
	all.Wait()

	return context.Cause(ctx)
}

// wait waits until a channel is closed, for a time at most unless that is 0, or until ctx ends.
func wait(ctx context.Context, c <-chan struct{}, most time.Duration) {
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// persist calls read until it returns nil or ctx ends, and says in the view why it has to try
// again.
func (f *feed) persist(ctx context.Context, what string, read func(context.Context) error) {
	f.persistFor(ctx, f.to, what, read)
}

// persistFor is persist that says in show why it has to try again. While NATS is away it waits: that is said once, by
// watchConnection.
func (f *feed) persistFor(ctx context.Context, show notices, what string, read func(context.Context) error) {
	wait := firstPause
	var failing time.Time
	for ctx.Err() == nil {
		if f.Connection.Away() != nil {
			show.Clear(what)
			_ = f.Connection.AwaitConnection(ctx) // of one that is closed read returns the error
		}
		began := time.Now()
		works := time.AfterFunc(worksAfter, func() { show.Clear(what) })
		err := read(ctx)
		works.Stop()
		if err == nil {
			show.Clear(what)
		}
		if ctx.Err() != nil || err == nil {
			return
		}
		if time.Since(began) > worksAfter {
			wait, failing = firstPause, time.Time{}
		}
		isAfterOutage := failing.IsZero() && time.Since(f.Connection.Reconnected()) < afterOutage
		if failing.IsZero() {
			failing = time.Now()
			f.log.Warn("cannot be read, will retry", "what", what, "error", err)
		}
		if !isAfterOutage && (f.Connection.Away() == nil || !f.Connection.IsOutage(err)) {
			show.Problem(what, fmt.Sprintf("%s cannot be read since %s: %s", what, clock(failing), err))
		}
		if pause(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, maxPause)
	}
}

// clock returns a time for people.
func clock(at time.Time) string { return at.Local().Format(model.TimeFormat) }

// watchConnection says when NATS cannot be reached: reading waits then, and is no error.
func (f *feed) watchConnection(ctx context.Context) {
	const about = " NATS" // the first of all problems
	for away := false; ctx.Err() == nil; _ = pause(ctx, awayPause) {
		err := f.Connection.Away()
		switch {
		case err == nil && away:
			f.to.Clear(about)
			f.to.Sees(about)
		case err != nil && !away:
			f.to.Blind(about, time.Now())
			f.to.Problem(about, fmt.Sprintf("NATS cannot be reached since %s (%v): this is what was known then", clock(time.Now()), err))
		}
		away = err != nil
	}
}

// notices shows problems by subject, until they are cleared.
type notices interface {
	Problem(about, text string)
	Clear(about string)
}
