package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/desired"

	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// startWait is how long the agent waits at start for what it needs to judge its
// assignments: the facts, and the bucket.
const startWait = 10 * time.Second

// longestSleep bounds the wait when nothing is due.
const longestSleep = time.Hour

// loop decides what the node does next. One goroutine, run, begins the runs and health check
// passes; they share the turn of running with it and hold it briefly. Another goroutine, assign,
// reads the assignments, and may wait for NATS.
type loop struct {
	set       *desired.Set
	manifests *runner.Manifests
	running   *runner.Running
	runner    *runner.Runner
	// facts returns the facts, and waits for the first ones.
	facts    func(context.Context) (model.Facts, error)
	requests *requests.Service
	watch    Assignments
	control  *desired.Control
	// paused reports whether the node was paused at the last look.
	paused   bool
	bucket   bucketNotices
	wakes    *wakes
	progress *progress
	// started is closed when the loop runs.
	started chan struct{}
	goal    status.Goal
	result  status.Result
	// syncing, synced and known are guarded by the turn. syncing reports whether assign works,
	// synced whether it finished once, and known is the state of the bucket at that time.
	syncing, synced bool
	known           model.Sync
	// startBy limits the wait for the facts and the bucket at the start.
	startBy time.Time
	// unconverged returns why not all of keys is in its desired state.
	unconverged func(keys []string, known model.Sync) []string
	log         *slog.Logger
}

// run works until ctx ends. hard outlives it, for the runs in progress.
func (l *loop) run(ctx, hard context.Context) {
	l.startBy = time.Now().Add(startWait)
	close(l.started)
	assigning, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { l.assign(assigning) })
	for ctx.Err() == nil && !l.result.Reached {
		l.running.Lock()
		l.progress.steps.Add(1)
		until := l.work(ctx, hard)
		l.running.Unlock()
		if !until.IsZero() {
			l.sleep(ctx, until)
		}
	}
	stop()
	all.Wait()
	l.running.Wait()
	l.manifests.Close(context.WithoutCancel(ctx))
}

// work does the next thing that is due. If nothing is due, it returns the time of the next work. The
// turn is held.
func (l *loop) work(ctx, hard context.Context) (until time.Time) {
	m := l.manifests
	m.NoteDrift(time.Now())
	l.notePause(ctx, time.Now())
	l.step("concluding health checks", func() { m.ConcludePasses(ctx) })
	switch now := time.Now(); {
	case l.beginRequest(ctx, hard, now), l.synced && l.askForRuns(ctx, hard):
	case m.RunNext(ctx, hard, now):
	case m.BeginPasses(ctx, hard, now):
	default:
		next, end := l.next(now), l.endAt(now)
		if isOver(end, now) {
			l.result = status.Result{Reached: true, Reasons: l.unconverged(m.View().Keys(), l.known)}
		}
		if !end.IsZero() {
			next = model.EarlierTime(next, end)
		}
		return next
	}

	return time.Time{}
}

// assign follows the assignments until ctx ends.
func (l *loop) assign(ctx context.Context) {
	l.awaitFacts(ctx)
	for !l.mayStart(time.Now(), l.startBy) && ctx.Err() == nil {
		tasks.Pause(ctx, time.Until(l.startBy), l.wakes.assign)
	}
	l.wakes.assignments.Store(true)
	for ctx.Err() == nil {
		l.running.Lock()
		view := l.manifests.View()
		l.syncing = l.wakes.assignments.Swap(false) || isOver(view.Next, time.Now())
		syncs := l.syncing
		l.running.Unlock()
		if syncs {
			if l.wakes.retry.Swap(false) {
				l.set.RetryNow(time.Now())
			}
			l.step("syncing assignments", func() {
				entries, sync := l.watch.Entries()
				l.noteBucket(ctx, sync)
				l.manifests.Sync(ctx, entries, sync)
			})
			l.running.Lock()
			l.syncing, l.synced = false, true
			l.running.Unlock()
			l.wakes.signal.Notify()
			continue
		}
		select {
		case <-ctx.Done():
		case <-l.wakes.assign:
		case <-time.After(time.Until(model.EarlierNonZero(view.Next, time.Now().Add(longestSleep)))):
		case <-l.set.Messages:
			l.setSyncing(true)
			l.step("updating assignments", func() { l.manifests.Handle(ctx) })
			l.setSyncing(false)
			l.wakes.signal.Notify()
		}
	}
}

// setSyncing records whether assign works.
func (l *loop) setSyncing(syncing bool) {
	l.running.Lock()
	defer l.running.Unlock()
	l.syncing = syncing
}

// noteBucket notes the state of the bucket.
func (l *loop) noteBucket(ctx context.Context, sync model.Sync) {
	l.running.Lock()
	defer l.running.Unlock()
	if !l.synced {
		l.runner.NoteChange(time.Now())
	}
	l.known = sync
	l.bucket.note(ctx, sync)
}

// awaitFacts waits a while for the first facts.
func (l *loop) awaitFacts(ctx context.Context) {
	waiting, stop := context.WithTimeout(ctx, startWait)
	defer stop()
	if _, err := l.facts(waiting); err != nil && ctx.Err() == nil {
		l.log.WarnContext(ctx, "starting without facts", "error", err)
	}
}

// mayStart reports whether the bucket was read, or is not waited for any longer,
// because it is away or does not answer.
func (l *loop) mayStart(now, startBy time.Time) bool {
	_, sync := l.watch.Entries()

	known := sync.Complete() || len(sync.Kept) > 0 || sync.Err != nil

	return known && l.control.IsSettled() || !now.Before(startBy)
}

// notePause notes whether the node is paused; all manifests run once that is over.
func (l *loop) notePause(ctx context.Context, now time.Time) {
	before, paused := l.paused, l.control.Paused()
	if l.paused = paused != nil; before == l.paused {
		return
	}
	if paused != nil {
		l.log.InfoContext(ctx, "paused, only observing", "pause", paused.String(), "from", paused.From)
	} else {
		l.log.InfoContext(ctx, "resumed")
	}
	l.manifests.Pause(l.paused, now)
}

// step runs a part of the work; a panic ends that part alone.
func (l *loop) step(task string, f func()) {
	_ = tasks.Guard(l.log, task, func() error { // Guard logs it
		f()
		return nil
	})
}

// sleep waits for a wake, or a time.
func (l *loop) sleep(ctx context.Context, until time.Time) {
	tasks.Pause(ctx, time.Until(until), l.wakes.signal)
}

// next returns when something is due by itself.
func (l *loop) next(now time.Time) time.Time {
	return model.EarlierNonZero(l.manifests.Next(now), now.Add(longestSleep))
}

// endAt returns when the goal is reached if nothing happens, not before the bucket was read
// or l.startBy; zero is never. It is called when nothing is due.
func (l *loop) endAt(now time.Time) time.Time {
	at := now
	if !l.goal.Once {
		at = l.runner.ChangedAt().Add(l.goal.Quiet)
	}
	switch {
	case !l.goal.IsSet() || !l.synced || l.syncing || l.wakes.assignments.Load() || l.set.HasMessages() || l.manifests.View().Fetching || !l.running.IsEmpty():
		return time.Time{}
	case !l.known.Complete() && at.Before(l.startBy):
		return l.startBy
	default:
		return at
	}
}

// isOver reports whether a time, unless it is zero, is over.
func isOver(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }
