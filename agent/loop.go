package agent

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
)

// startWait limits the wait at the start for the facts and the bucket, which decide which assignments
// apply.
const startWait = 10 * time.Second

// longestSleep limits the wait for the next task.
const longestSleep = time.Hour

// loop decides what the node does next. The goroutine run starts runs and health check passes. The
// goroutine assign reads the assignments and may wait for NATS. They share the state below with the runs,
// under the lock of running, and hold it briefly.
type loop struct {
	set       *desired.Set
	manifests *runner.Manifests
	running   *runner.Running
	runner    *runner.Runner
	// facts returns the facts and waits for the first ones.
	facts    func(context.Context) (model.Facts, error)
	requests *requests.Service
	watch    Assignments
	control  *desired.Control
	bucket   bucketNotices
	wakes    *wakes
	// steps counts the steps for the watchdog. seen is the number at its last check.
	steps atomic.Uint64
	seen  uint64
	// started is closed when the loop runs.
	started chan struct{}
	goal    status.Goal
	result  status.Result
	// The lock guards syncing, synced and known. syncing reports whether assign works, synced whether
	// it finished once. known is the state of the bucket at the last sync.
	syncing, synced bool
	known           model.Sync
	// startBy ends the wait for the facts and the bucket at the start.
	startBy time.Time
	// unconverged returns why some of keys are not in their desired state.
	unconverged func(keys []string, known model.Sync) []string
	log         *slog.Logger
}

// run starts the tasks that are due, one in each step, until ctx ends. The runs in progress continue until
// hard ends.
func (l *loop) run(ctx, hard context.Context) {
	l.startBy = time.Now().Add(startWait)
	close(l.started)
	assigning, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { l.assign(assigning) })
	m := l.manifests
	for ctx.Err() == nil && !l.result.Reached {
		l.running.Lock()
		l.steps.Add(1)
		m.NoteDrift(time.Now())
		m.Pause(ctx, l.control.Paused(), time.Now())
		l.step("concluding health checks", func() { m.Checks.ConcludePasses(ctx) })
		var until time.Time // zero after the start of a task
		switch now := time.Now(); {
		case l.beginRequest(ctx, hard, now), l.synced && l.askForRuns(ctx, hard):
		case m.RunNext(ctx, hard, now):
		case m.Checks.BeginPasses(ctx, hard, now):
		default:
			until = l.next(now)
		}
		l.running.Unlock()
		if !until.IsZero() {
			tasks.Pause(ctx, time.Until(until), l.wakes.signal)
		}
	}
	stop()
	all.Wait()
	l.running.Wait()
	l.manifests.Close(context.WithoutCancel(ctx))
}

// next returns the time of the next task, or sets the result if the goal is reached. No task is due. The
// caller holds the lock.
func (l *loop) next(now time.Time) time.Time {
	next, end := model.EarlierNonZero(l.manifests.Next(now), now.Add(longestSleep)), l.endAt(now)
	if isOver(end, now) {
		l.result = status.Result{Reached: true, Reasons: l.unconverged(l.manifests.View().Keys(), l.known)}
	}

	return model.EarlierNonZero(next, end)
}

// assign follows the assignments until ctx ends. After a panic it syncs again after a growing wait.
func (l *loop) assign(ctx context.Context) {
	l.awaitFacts(ctx)
	for !l.mayStart(time.Now(), l.startBy) && ctx.Err() == nil {
		tasks.Pause(ctx, time.Until(l.startBy), l.wakes.assign)
	}
	l.wakes.assignments.Store(true)
	var wait tasks.Backoff
	var retryAt time.Time // zero after a sync without a panic
	for ctx.Err() == nil {
		next, syncs := l.beginSync(retryAt)
		if syncs {
			retryAt = time.Time{}
			if l.step("syncing assignments", func() {
				if l.wakes.retry.Swap(false) {
					l.set.RetryNow(time.Now())
				}
				entries, sync := l.watch.Entries()
				l.running.Do(func() { l.known = sync })
				l.bucket.note(ctx, sync)
				l.manifests.Sync(ctx, entries, sync)
			}) {
				wait.Reset()
			} else {
				retryAt = time.Now().Add(wait.Next())
			}
			l.endSync(true)
			continue
		}
		select {
		case <-ctx.Done():
		case <-l.wakes.assign:
		case <-time.After(time.Until(model.EarlierNonZero(next, time.Now().Add(longestSleep)))):
		case <-l.set.Messages:
			l.running.Do(func() { l.syncing = true })
			l.step("updating assignments", func() { l.manifests.Handle(ctx) })
			l.endSync(false)
		}
	}
}

// beginSync reports whether a sync is due, and otherwise returns the time of the next one. After a failed
// sync only a change of the assignments makes a sync due before retryAt.
func (l *loop) beginSync(retryAt time.Time) (next time.Time, due bool) {
	l.running.Lock()
	defer l.running.Unlock()
	if next = retryAt; retryAt.IsZero() {
		next = l.manifests.View().Next
	}
	now := time.Now()
	l.syncing = l.wakes.assignments.Swap(false) || isOver(next, now)
	if l.syncing && !l.synced {
		l.runner.ChangedAt = now
	}

	return next, l.syncing
}

// endSync records that assign does not work, and wakes run. synced reports whether it read the
// assignments.
func (l *loop) endSync(synced bool) {
	l.running.Do(func() { l.syncing, l.synced = false, l.synced || synced })
	l.wakes.signal.Notify()
}

// awaitFacts waits for the first facts, for at most startWait.
func (l *loop) awaitFacts(ctx context.Context) {
	waiting, stop := context.WithTimeout(ctx, startWait)
	defer stop()
	if _, err := l.facts(waiting); err != nil && ctx.Err() == nil {
		l.log.WarnContext(ctx, "starting without facts", "error", err)
	}
}

// mayStart reports whether the first sync may begin: the bucket was read or cannot be read, or startBy is
// over.
func (l *loop) mayStart(now, startBy time.Time) bool {
	_, sync := l.watch.Entries()

	known := sync.Complete() || len(sync.Kept) > 0 || sync.Err != nil

	return known && l.control.IsSettled() || !now.Before(startBy)
}

// step runs a part of the work. It returns false after a panic, which ends only this part.
func (l *loop) step(task string, f func()) bool {
	err := tasks.Guard(l.log, task, func() error { // Guard logs the panic
		f()
		return nil
	})

	return err == nil
}

// endAt returns the time at which the goal is reached without further changes, or zero. It is not before
// startBy unless the bucket was read. No task is due.
func (l *loop) endAt(now time.Time) time.Time {
	at := now
	if !l.goal.Once {
		at = l.runner.ChangedAt.Add(l.goal.Quiet)
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

// isOver reports whether a time has passed. Zero never passes.
func isOver(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// maxRequests limits the requests in progress, including waiting ones.
const maxRequests = 16

// beginRequest starts the oldest request, and reports whether there was one. The caller holds the lock.
func (l *loop) beginRequest(ctx, hard context.Context, now time.Time) bool {
	if l.running.Lanes.Len(runner.Request) >= maxRequests || now.Before(l.running.Lanes.Next()) {
		return false
	}
	execute := l.requests.Next()
	if execute == nil {
		return false
	}
	l.running.Begin(runner.Request, "", nil, func(lane *runner.Lane) {
		execute(ctx, hard, func(ctx, hard context.Context, q requests.Run) (*model.Run, error) {
			return l.runRequest(ctx, hard, lane, q)
		})
	})

	return true
}

// askForRuns schedules the runs of the oldest run request, and reports whether there was one. The caller
// holds the lock.
func (l *loop) askForRuns(ctx, hard context.Context) bool {
	r := l.requests.NextRun(ctx)
	if r == nil {
		return false
	}
	l.manifests.Ask(ctx, hard, r.RunRequest, r)

	return true
}

func (l *loop) runRequest(ctx, hard context.Context, lane *runner.Lane, q requests.Run) (*model.Run, error) {
	o := l.runner.Options(hard, ksuid.New().String(), q.Noop)
	o.Manifest, o.Cause, o.CorrelationID, o.Full, o.Outputs = "ensure", model.CauseEnsure, q.ID, true, true
	o.Secrets, o.Check = q.Secrets, q.Check
	o.OnTransaction = func(t *model.Transaction) {
		runner.LogTransaction(ctx, l.log, t)
		q.OnTransaction(t)
	}

	return l.runner.Run(ctx, lane, o, func(_ context.Context, o engine.ReconcileOptions) (runner.Attempt, error) {
		if err := q.MayBegin(); err != nil {
			return runner.Attempt{}, err
		}
		a := runner.Attempt{Graph: q.Graph, Options: o.Options, Began: q.Began}
		l.running.Do(func() { a.Blocked = l.runner.Enter(lane, o.RunID, q.Graph) })
		return a, nil
	})
}

// wakes contains the signals to the goroutines of the loop. A signal carries no data. Several signals count
// as one until the goroutine receives them.
type wakes struct {
	// signal wakes run, assign wakes the reading of assignments.
	signal, assign tasks.Signal
	// assignments means that the assignments may have changed, retry that transient errors are due now.
	assignments, retry atomic.Bool
}

func newWakes() *wakes { return &wakes{signal: tasks.NewSignal(), assign: tasks.NewSignal()} }

func (w *wakes) assignmentsChanged() {
	w.assignments.Store(true)
	w.assign.Notify()
}

// retryNow requests an immediate retry of transient errors.
func (w *wakes) retryNow() {
	w.retry.Store(true)
	w.assignmentsChanged()
}

// Started is closed when the loop runs.
func (a *Agent) Started() <-chan struct{} { return a.loop.started }

// Alive reports whether the loop made a step since the last call or a run is in progress, which may take any
// time. It wakes the loop for the next call. One goroutine calls it at intervals.
func (a *Agent) Alive() bool {
	steps := a.loop.steps.Load()
	moved := steps != a.loop.seen
	a.loop.seen = steps
	a.loop.wakes.signal.Notify()

	return moved || a.runs.Any()
}
