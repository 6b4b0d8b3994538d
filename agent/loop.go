package agent

import (
	"context"
	"time"

	"github.com/musterfleet/muster/agent/goal"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// startWait is how long the agent waits at start for what it needs to judge its
// assignments: the facts, and the bucket.
const startWait = 10 * time.Second

// longestSleep bounds the wait when nothing is due.
const longestSleep = time.Hour

// loop does the work of the node, one thing at a time, in one goroutine. Only
// health check passes have their own.
type loop struct {
	manifests *manifests
	requests  *requests.Service
	watch     Assignments
	bucket    bucketNotices
	wakes     *wakes
	progress  *progress
	// started is closed when the loop runs.
	started chan struct{}
	goal    goal.Goal
	result  goal.Result
	// synced is what the bucket was known of when the assignments were synced last; away
	// returns why NATS cannot be reached, empty while it can.
	synced model.Sync
	away   func() string
}

// run works until ctx ends. hard outlives it, for what is in hand.
func (l *loop) run(ctx, hard context.Context) {
	defer l.manifests.set.Close(context.WithoutCancel(ctx))
	defer l.manifests.health.Wait()
	defer l.manifests.repairs.Close()
	l.awaitFacts(ctx)
	startBy := time.Now().Add(startWait)
	synced := false
	close(l.started)
	for ctx.Err() == nil {
		l.manifests.noteDrift(time.Now())
		l.progress.steps.Add(1)
		l.step("concluding health checks", func() { l.manifests.concludePasses(ctx) })
		if l.wakes.retry.Swap(false) {
			l.manifests.set.RetryNow(time.Now())
		}
		switch now := time.Now(); {
		case !synced && !l.mayStart(now, startBy):
			if !l.requests.AnswerNext(ctx, hard) {
				l.sleep(ctx, startBy)
			}
		case l.wakes.assignments.Swap(false) || !synced || isOver(l.manifests.set.Next(), now):
			if !synced {
				l.manifests.runner.changedAt = now
			}
			synced = true
			l.step("syncing assignments", func() { l.sync(ctx, now) })
		case l.requests.AnswerNext(ctx, hard):
		case l.manifests.runNext(ctx, hard, now):
		case l.manifests.beginPasses(ctx, hard, now):
		default:
			next, end := l.next(), l.endAt(now, startBy)
			if !end.IsZero() && !now.Before(end) {
				l.result = goal.Result{Reached: true, Reasons: l.unconverged()}
				return
			}
			if !end.IsZero() {
				next = tasks.Earliest(next, end)
			}
			l.sleep(ctx, next)
		}
	}
}

// awaitFacts waits a while for the first facts.
func (l *loop) awaitFacts(ctx context.Context) {
	waiting, stop := context.WithTimeout(ctx, startWait)
	defer stop()
	if _, err := l.manifests.runner.facts.wait(waiting); err != nil && ctx.Err() == nil {
		l.manifests.log.WarnContext(ctx, "starting without facts", "error", err)
	}
}

// mayStart reports whether the bucket was read, or is not waited for any longer,
// because it is away or does not answer.
func (l *loop) mayStart(now, startBy time.Time) bool {
	_, sync := l.watch.Entries()

	return sync.Complete() || len(sync.Kept) > 0 || sync.Err != nil || !now.Before(startBy)
}

func (l *loop) sync(ctx context.Context, now time.Time) {
	entries, sync := l.watch.Entries()
	l.synced = sync
	l.bucket.note(ctx, sync, l.manifests)
	l.manifests.sync(ctx, entries, sync, now)
}

// step runs a part of the work; a panic ends that part alone.
func (l *loop) step(task string, f func()) {
	_ = tasks.Guard(l.manifests.log, task, func() error { // Guard logs it
		f()
		return nil
	})
}

// sleep waits for a wake, or a time.
func (l *loop) sleep(ctx context.Context, until time.Time) {
	tasks.Pause(ctx, time.Until(until), l.wakes.signal)
}

// next returns when something is due by itself.
func (l *loop) next() time.Time {
	at := time.Now().Add(longestSleep)
	earlier := func(t time.Time) {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	m := l.manifests
	earlier(m.set.Next())
	earlier(m.repairs.Next())
	for _, key := range m.set.Keys() {
		earlier(m.schedule.Next(key))
		earlier(m.passAt(key))
	}

	return at
}

// endAt returns when the goal is reached if nothing happens, not before the bucket was read
// or startBy; zero is never. It is called when nothing is due.
func (l *loop) endAt(now, startBy time.Time) time.Time {
	m := l.manifests
	at := now
	if !l.goal.Once {
		at = m.runner.changedAt.Add(l.goal.Quiet)
	}
	switch {
	case !l.goal.IsSet() || m.set.Fetching():
		return time.Time{}
	case !l.synced.Complete() && at.Before(startBy):
		return startBy
	default:
		return at
	}
}

// unconverged returns why not all is in its desired state.
func (l *loop) unconverged() []string {
	m := l.manifests
	var status model.AgentStatus
	m.status.Describe(&status)
	m.runner.runs.Describe(&status)

	return goal.Unconverged(status, m.set.Keys(), l.synced, l.away())
}

// isOver reports whether a time, unless it is zero, is over.
func isOver(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }
