package serve

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

const (
	// firstPause and maxPause limit the pauses between attempts.
	firstPause = 500 * time.Millisecond
	// afterOutage is how long after an outage the first failure of a read is not shown.
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
	// settlePause is the wait for further changes of assignments before the next list.
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
	// omitsReports leaves out all reports.
	omitsReports bool
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
	all.Go(func() { f.persist(ctx, f.to, "nodes", f.listNodes) })
	all.Go(func() {
		wait(ctx, f.listed, nodesPatience)
		f.persist(ctx, f.to, "changes of nodes", f.followNodes)
	})
	changed := make(chan struct{}, 1)
	all.Go(func() {
		f.persist(ctx, f.to, "assignments", func(ctx context.Context) error { return f.listAssignments(ctx, changed) })
	})
	all.Go(func() {
		f.persist(ctx, f.to, "changes of assignments", func(ctx context.Context) error { return f.followAssignments(ctx, changed) })
	})
	if !f.omitsReports {
		all.Go(func() {
			wait(ctx, f.listed, nodesPatience)
			f.persist(ctx, f.to, "reports", f.followReports)
		})
		all.Go(func() {
			wait(ctx, f.begun, 0)
			f.persist(ctx, f.to, "older reports", f.readHistory)
		})
		all.Go(func() {
			wait(ctx, f.begun, 0)
			f.persist(ctx, f.to, "the end of the reports", f.followEnd)
		})
	}
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

// persist calls read until it returns nil or ctx ends, and shows the reason for each retry. It waits while NATS is away,
// which watchConnection shows.
func (f *feed) persist(ctx context.Context, show notices, what string, read func(context.Context) error) {
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

func clock(at time.Time) string { return at.Local().Format(model.TimeFormat) }

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
			f.to.Problem(about, fmt.Sprintf("NATS cannot be reached since %s (%v): the data is of that time", clock(time.Now()), err))
		}
		away = err != nil
	}
}

type notices interface {
	Problem(about, text string)
	Clear(about string)
}

// listNodes adds all nodes, and removes expired nodes from time to time.
func (f *feed) listNodes(ctx context.Context) error {
	asked := time.Now()
	all, err := f.Nodes.Nodes(ctx)
	if err != nil {
		return err
	}
	f.to.SetNodes(asked, all)
	f.to.Clear("nodes")
	f.isListed.Do(func() { close(f.listed) })
	for {
		if err := pause(ctx, listPause); err != nil {
			return err
		}
		if err := f.pruneNodes(ctx); err != nil {
			return err
		}
	}
}

// pruneNodes removes nodes with an expired state. NATS does not announce the expiry.
func (f *feed) pruneNodes(ctx context.Context) error {
	stored := map[string]bool{}
	for name, err := range f.Nodes.Stored(ctx) {
		if err != nil {
			return err
		}
		stored[name] = true
	}
	for n := range f.to.All() {
		if stored[n.Node] {
			continue
		}
		if _, err := f.Nodes.State(ctx, n.Node); errors.Is(err, model.ErrNotFound) {
			f.to.RemoveNode(n.Node)
		}
	}

	return nil
}

func (f *feed) followNodes(ctx context.Context) error {
	for c, err := range f.Nodes.Watch(ctx) {
		if err != nil {
			return err
		}
		if c.Gone {
			f.to.RemoveNode(c.Node.Node)
		} else {
			f.to.SetNode(c.Node)
		}
	}

	return ctx.Err()
}

// listAssignments sets the assignments, and lists them again after each change.
func (f *feed) listAssignments(ctx context.Context, changed <-chan struct{}) error {
	again := time.NewTicker(listPause)
	defer again.Stop()
	for {
		entries, err := f.Assignments.List(ctx)
		if err != nil {
			return err
		}
		f.to.SetAssignments(entries)
		f.to.Clear("assignments")
		select {
		case <-changed:
			if err := pause(ctx, settlePause); err != nil {
				return err
			}
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *feed) followAssignments(ctx context.Context, changed chan<- struct{}) error {
	for err := range f.Assignments.Changes(ctx) {
		if err != nil {
			return err
		}
		select {
		case changed <- struct{}{}:
		default: // a signal is pending
		}
	}

	return ctx.Err()
}

const (
	// newestReports is the number of messages before the end that are read first.
	newestReports = 10_000
	// blockSize is the number of older messages in one read. The newest block comes first.
	blockSize = 50_000
	// maxHistory is the maximum number of bytes of older messages that are read.
	maxHistory = 2 << 30
)

// past limits the history: the bytes in total and the messages in one block.
type past struct {
	most  int
	block uint64
}

// followReports adds the newest reports, and then new ones as they arrive.
func (f *feed) followReports(ctx context.Context) error {
	end := uint64(0) // the last sequence at the first start
	if !f.isBegun {
		newest, err := f.Reports.NewestMessage(ctx)
		if err != nil {
			return err
		}
		end = newest.Sequence
		f.to.SetEnd(end)
		f.after = end - min(end, newestReports)
		f.until = f.after + 1
	}
	if end == 0 {
		f.begin(time.Now())
	}
	var first time.Time

	return each(f.Reports.Messages(ctx, model.ReportRange{After: f.after, Follow: true}), math.MaxUint64, func(m model.StoredReports) {
		f.to.Add(m)
		f.after = m.Sequence
		if !f.isBegun {
			f.shares.Add(m)
		}
		if first.IsZero() {
			first = m.Stored
		}
		if m.Sequence >= end {
			f.begin(first)
		}
	})
}

// each calls tell for the messages up to a sequence. A second goroutine reads and decodes ahead.
func each(all iter.Seq2[model.StoredReports, error], until uint64, tell func(model.StoredReports)) error {
	const waiting = 64
	read := make(chan model.StoredReports, waiting)
	var telling sync.WaitGroup
	telling.Go(func() {
		for m := range read {
			tell(m)
		}
	})
	defer telling.Wait()
	defer close(read)
	for m, err := range all {
		if err != nil {
			return err
		}
		if m.Sequence >= until {
			break
		}
		read <- m
	}

	return nil
}

const endPause = 10 * time.Second

// followEnd sets the end of the stream, so that the view knows how many messages are missing. It asks the leader,
// because another server may lag.
func (f *feed) followEnd(ctx context.Context) error {
	for {
		end, err := f.Reports.End(ctx)
		if err != nil {
			return err
		}
		f.to.SetEnd(end)
		if err := pause(ctx, endPause); err != nil {
			return err
		}
	}
}

// begin starts the read of older reports. All reports since the given time were added.
func (f *feed) begin(since time.Time) {
	if !f.isBegun {
		f.isBegun = true
		f.to.SetSince(since, false, false)
		close(f.begun)
	}
}

// readHistory adds the last run of each node, and then the older reports, the newest block first.
func (f *feed) readHistory(ctx context.Context) error {
	newest := model.ReportRange{Kind: model.KindRun, Newest: true}
	if err := each(f.Reports.Messages(ctx, newest), math.MaxUint64, f.to.AddRuns); err != nil {
		return err
	}
	f.to.SetLastRuns()
	oldest := time.Now().Add(-f.keep)
	read, size, known := 0, f.past.block, time.Time{}
	all := f.until <= 1
	for !all && read < f.past.most {
		if f.block == (block{}) {
			from := f.until - min(size, f.until-1)
			f.block = block{from: from, after: from - 1}
		}
		if err := f.addPast(f.Reports.Messages(ctx, model.ReportRange{After: f.block.after}), oldest); err != nil {
			return err
		}
		b := f.block
		f.until, f.block = b.from, block{}
		read += b.bytes
		all = f.until <= 1 || b.count > 0 && b.first.Before(oldest)
		if b.count > 0 && !all {
			known = b.first
			f.to.SetSince(known, false, false)
		}
		// After a gap of removed messages, the next block is larger.
		if size *= 2; uint64(b.count) > size/4 {
			size = f.past.block
		}
	}
	if err := f.tellShares(ctx); err != nil {
		return err
	}
	if all {
		known = oldest
	}
	f.to.SetSince(known, true, !all)

	return nil
}

// tellShares names the nodes that have more reports than the stream retains.
func (f *feed) tellShares(ctx context.Context) error {
	bounds, err := f.Reports.Bounds(ctx)
	if err != nil {
		return err
	}
	f.to.SetShares(bounds.PerSubject, f.shares.Full(bounds))
	f.shares = view.Shares{}

	return nil
}

// block is a part of the history. A retry after a failed read continues after the messages that were added.
type block struct {
	// from is the first sequence of the block, after the last added sequence.
	from, after  uint64
	count, bytes int
	// first is the time of the first message.
	first time.Time
}

// addPast adds the rest of the block up to the messages that were added before. It skips messages older than oldest.
func (f *feed) addPast(rest iter.Seq2[model.StoredReports, error], oldest time.Time) error {
	b := &f.block

	return each(rest, f.until, func(m model.StoredReports) {
		b.after = m.Sequence
		b.bytes += m.Size
		if b.count++; b.count == 1 {
			b.first = m.Stored
		}
		if !m.Stored.Before(oldest) {
			f.to.Add(m)
			f.shares.Add(m)
		}
	})
}
