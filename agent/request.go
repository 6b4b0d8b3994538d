package agent

import (
	"context"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/model"
)

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
	l.manifests.Ask(ctx, hard, runner.RunRequest{
		ID: r.ID, Names: r.Manifests, Noop: r.Noop, MayBegin: r.MayBegin,
		Begin: func() { r.Begin(hard) },
		End:   func(runs []model.RequestedRun, err error) { r.End(hard, runs, err) },
	})

	return true
}

// runRequest runs a request.
func (l *loop) runRequest(ctx, hard context.Context, lane *runner.Lane, q requests.Run) (*model.Run, error) {
	o := l.runner.Options(hard, ksuid.New().String(), q.Noop)
	o.Manifest, o.Cause, o.CorrelationID, o.Full, o.Outputs = "ensure", model.CauseEnsure, q.ID, true, true
	o.Secrets, o.Check = q.Secrets, q.Check
	o.OnTransaction = func(t *model.Transaction) {
		runner.LogTransaction(ctx, l.log, t)
		q.OnTransaction(t)
	}

	return l.runner.Run(ctx, lane, o, func(context.Context, bool) (runner.Prepared, error) {
		return runner.Prepared{Graph: q.Graph, Began: q.Began}, q.MayBegin()
	})
}
