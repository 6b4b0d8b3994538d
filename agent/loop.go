package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/agent/assignments"
	"github.com/musterfleet/muster/agent/control"
	"github.com/musterfleet/muster/agent/goal"
	"github.com/musterfleet/muster/agent/manifests"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/agent/runs"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// startWait is how long the agent waits at start for what it needs to judge its
// assignments: the facts, and the bucket.
const startWait = 10 * time.Second

// longestSleep bounds the wait when nothing is due.
const longestSleep = time.Hour

// loop decides what the node does next, in one goroutine. Runs and health check passes go
// on in goroutines of their own; what they share with the loop they touch in turn.
type loop struct {
	set       *assignments.Set
	manifests *manifests.Manifests
	running   *runs.Running
	runner    *runs.Runner
	// facts returns the facts, waiting for the first.
	facts    func(context.Context) (model.Facts, error)
	requests *requests.Service
	watch    Assignments
	control  *control.Control
	// paused is that the node was paused when the loop last looked.
	paused   bool
	bucket   bucketNotices
	wakes    *wakes
	progress *progress
	// started is closed when the loop runs.
	started chan struct{}
	goal    goal.Goal
	result  goal.Result
	// startBy is when it goes on without what it waits for at start, synced that it does
	// not wait any more.
	startBy time.Time
	synced  bool
	// known is what the bucket was known of when the assignments were synced last.
	known model.Sync
	// unconverged returns why not all of keys is in its desired state.
	unconverged func(keys []string, known model.Sync) []string
	log         *slog.Logger
}

// run works until ctx ends. hard outlives it, for what is in hand.
func (l *loop) run(ctx, hard context.Context) {
	defer l.manifests.Close(context.WithoutCancel(ctx))
	defer l.running.Wait()
	l.awaitFacts(ctx)
	l.startBy = time.Now().Add(startWait)
	close(l.started)
	for ctx.Err() == nil && !l.result.Reached {
		l.running.Lock()
		l.progress.steps.Add(1)
		until := l.work(ctx, hard)
		l.running.Unlock()
		if !until.IsZero() {
			l.sleep(ctx, until)
		}
	}
}

// work does the next thing that is due, and returns until when to sleep where there was
// none. The turn is held.
func (l *loop) work(ctx, hard context.Context) (until time.Time) {
	m := l.manifests
	m.NoteDrift(time.Now())
	l.notePause(ctx, time.Now())
	l.step("concluding health checks", func() { m.ConcludePasses(ctx) })
	if l.wakes.retry.Swap(false) {
		l.set.RetryNow(time.Now())
	}
	switch now := time.Now(); {
	case !l.synced && !l.mayStart(now, l.startBy):
		if !l.beginRequest(ctx, hard, now) {
			if free := l.running.Lanes.Next(); now.Before(free) {
				return model.EarlierTime(l.startBy, free)
			}
			return l.startBy
		}
	case l.wakes.assignments.Swap(false) || !l.synced || isOver(l.set.Next(), now):
		if !l.synced {
			l.runner.NoteChange(now)
		}
		l.synced = true
		l.step("syncing assignments", func() {
			entries, sync := l.watch.Entries()
			l.known = sync
			l.bucket.note(ctx, sync)
			m.Sync(ctx, entries, sync, now)
		})
	case l.beginRequest(ctx, hard, now), l.askForRuns(ctx, hard):
	case m.RunNext(ctx, hard, now):
	case m.BeginPasses(ctx, hard, now):
	default:
		next, end := l.next(now), l.endAt(now)
		if isOver(end, now) {
			l.result = goal.Result{Reached: true, Reasons: l.unconverged(l.set.Keys(), l.known)}
		}
		if !end.IsZero() {
			next = model.EarlierTime(next, end)
		}
		return next
	}

	return time.Time{}
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
	case !l.goal.IsSet() || l.set.Fetching() || !l.running.IsEmpty():
		return time.Time{}
	case !l.known.Complete() && at.Before(l.startBy):
		return l.startBy
	default:
		return at
	}
}

// isOver reports whether a time, unless it is zero, is over.
func isOver(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }
