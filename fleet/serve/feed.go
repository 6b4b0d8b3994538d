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
	// firstPause and maxPause limit the pauses between attempts.
	firstPause = 500 * time.Millisecond
	// afterOutage is the time after an outage in which the first failure of a read is expected and not shown.
	afterOutage = 30 * time.Second
	maxPause    = 30 * time.Second
	// worksAfter is the time after which a read counts as successful. It is longer than a request can take.
	worksAfter = 10 * time.Second
	// awayPause is the interval of checks of the connection.
	awayPause = 500 * time.Millisecond
	// listPause is the interval of checks for expired nodes, and of lists of assignments without a change.
	listPause = 5 * time.Minute
	// streamPause is the interval of checks of the streams, recheckPause the interval after a check without a clear
	// result.
	streamPause  = 10 * time.Second
	recheckPause = 2 * time.Second
	// settlePause is the time in which further changes of assignments are collected before the next list.
	settlePause = 100 * time.Millisecond
	// checkPatience is the maximum time that reading waits for the first check of the streams.
	checkPatience = 5 * time.Second
	// nodesPatience is the maximum time that reports wait for the first list of nodes.
	nodesPatience = 5 * time.Second
)

// feed copies the data in NATS to a view, and keeps the view current.
type feed struct {
	Store
	to   *view.Fleet
	keep time.Duration
	past past
	// look is the interval of checks of the streams.
	look time.Duration
	log  *slog.Logger
	// checked is closed after the first check of the streams, listed after the first list of nodes, begun after the
	// newest reports were added.
	checked, listed, begun chan struct{}
	isListed               sync.Once
	isBegun                bool
	// The reports up to the sequence after were added. until is the first sequence after the history that is not added
	// yet.
	after, until uint64
	// block is the part of the history that is being read.
	block block
	// unstored is the result of the last check for data that the server does not store.
	unstored fleet.Unstored
	// shares counts the stored messages of each node during the first read.
	shares view.Shares
}

func newFeed(store Store, to *view.Fleet, keep time.Duration, log *slog.Logger) *feed {
	return &feed{
		Store: store, to: to, keep: keep, past: past{maxHistory, blockSize}, look: streamPause, log: log,
		checked: make(chan struct{}), listed: make(chan struct{}), begun: make(chan struct{}),
	}
}

// run adds the current data and then every change, until ctx ends. It returns a *recreatedError if the view must start
// again, and the error of ctx otherwise.
func (f *feed) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	all.Go(func() { f.watchConnection(ctx) })
	all.Go(func() { stop(f.watchStreams(ctx)) })
	// A stream that is created again during a read is only detected by comparing it with an earlier check.
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

// wait waits until a channel is closed, most has passed (0 for no limit), or ctx ends.
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

// persist calls read until it returns nil or ctx ends, and shows the reason for each retry in the view.
func (f *feed) persist(ctx context.Context, what string, read func(context.Context) error) {
	f.persistFor(ctx, f.to, what, read)
}

// persistFor is persist with another place to show the reason. It waits while NATS is away, which watchConnection
// shows.
func (f *feed) persistFor(ctx context.Context, show notices, what string, read func(context.Context) error) {
	wait := firstPause
	var failing time.Time
	for ctx.Err() == nil {
		if f.Connection.Away() != nil {
			show.Clear(what)
			_ = f.Connection.AwaitConnection(ctx) // read returns the error of a closed connection
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

// clock formats a time.
func clock(at time.Time) string { return at.Local().Format(model.TimeFormat) }

// watchConnection shows when NATS cannot be reached.
func (f *feed) watchConnection(ctx context.Context) {
	const about = " NATS" // sorts before all other problems
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
