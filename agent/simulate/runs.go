package simulate

import (
	"context"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
)

// runs makes the runs of a node and reports them.
type runs struct {
	chance
	machine  *machine
	assigned *assigned
	control  *desired.Control
	status   *status.Node
	report   *reporting.Reporter
}

// observes reports whether the node is paused, so that runs only observe.
func (r *runs) observes() bool { return r.control.Paused() != nil }

// mayRun reports whether the assignment of a key may run on schedule. A new assignment waits for the
// end of a pause.
func (r *runs) mayRun(key string, observes bool) bool {
	a := r.assigned.active[key]

	return a != nil && (a.ran || !observes)
}

// run runs the assignment of a key and reports it. A run that observes changes nothing.
func (r *runs) run(ctx context.Context, key string, cause model.Cause, observes bool) {
	if r.mayRun(key, observes) {
		r.perform(ctx, key, cause, &request{}, observes)
	}
}

// runFor runs the assignment of a key for a request. It returns nil if there is no such assignment.
func (r *runs) runFor(ctx context.Context, key string, cause model.Cause, asked *request) *model.Run {
	return r.perform(ctx, key, cause, asked, r.observes())
}

// perform makes a run.
func (r *runs) perform(ctx context.Context, key string, cause model.Cause, asked *request, observes bool) *model.Run {
	a := r.assigned.active[key]
	if ctx.Err() != nil || a == nil {
		return nil
	}
	run := r.machine.begin(key, a.Revision, a.manifest.Digest, cause)
	run.Noop, run.CorrelationID = a.manifest.Noop || asked.Noop || observes, asked.ID
	record := r.status.Record(key, !asked.Noop)
	for i := range a.manifest.Resources {
		t := r.result(run, a, i, observes)
		run.Counts.Add(t)
		for _, text := range t.Errors {
			run.Errors = append(run.Errors, t.Label()+": "+text)
		}
		run.Duration += t.Duration
		r.report.Transaction(t)
		if !asked.Noop {
			record.Note(t, true)
		}
	}
	if !asked.Noop {
		a.ran = true
	}
	if !run.Noop {
		a.pending, a.drifted = nil, false
	}
	run.Counts.Unique = len(a.manifest.Resources)
	r.report.Run(run)
	if !asked.Noop {
		record.Conclude(run, true)
	}
	r.report.End(run.RunID)

	return run
}

// result returns the transaction of a resource in a run.
func (r *runs) result(run *model.Run, a *assignment, i int, observes bool) *model.Transaction {
	resource := &a.manifest.Resources[i]
	t := r.machine.transaction(run, resource)
	t.Duration = time.Duration(r.IntN(3_000_000))
	fails := i == r.machine.failing(a.manifest)
	switch {
	case fails && !run.Noop:
		t.Failed, t.Errors = true, []string{r.machine.errorOf(resource.Ref.Type)}
	case a.pending != nil && a.pending[i] != nil:
		t.Changed, t.Changes = true, a.changes(i, run.Noop)
	case fails && observes:
		t.Changed, t.Changes = true, []model.Change{resource.change(nil)}
	}
	if t.Changed && (a.drifted || observes) && run.Cause.IsUnasked() {
		noteDrift(run, t)
	}

	return t
}

// noteDrift records the drift of a resource and its repair.
func noteDrift(run *model.Run, t *model.Transaction) {
	run.Drift.Detected++
	if t.Noop {
		return
	}
	run.Drift.Repaired++
	run.Drift.Latency = t.Duration
	t.Drift = &model.Repair{From: t.Changes[0].Property, SeenAt: t.Timestamp, RepairedAt: t.Timestamp.Add(t.Duration), Latency: t.Duration}
}

// key returns the key of a random active assignment, or an empty text.
func (r *runs) key() string {
	if len(r.assigned.active) == 0 {
		return ""
	}

	return place(r.assigned.keys(), r.IntN(len(r.assigned.active)))
}

// cause returns the cause of a run without a request.
func (r *runs) cause(key string) model.Cause {
	if a := r.assigned.active[key]; a != nil && !a.ran {
		return model.CauseManifest
	}

	return model.CauseSchedule
}
