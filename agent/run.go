package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/lanes"
	"github.com/musterfleet/muster/agent/pace"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/journal"
	"github.com/musterfleet/muster/resources/engine/report"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/reconcile"
	"github.com/musterfleet/muster/resources/resource"
)

// runner makes single runs on the node.
type runner struct {
	hands   *hands
	host    *host.Host
	checker engine.Checker
	loader  Loader
	version string
	config  *settings
	facts   *factCache
	// ran is notified after each run.
	ran tasks.Signal
	log *slog.Logger
	// changes counts how often a run changed the machine, or may have. Whoever touches it,
	// changedAt or journals holds the turn.
	changes int
	// changedAt is when a run or another assignment last changed something.
	changedAt time.Time
	// journals and paces are those of manifests, by key.
	journals map[string]*journal.Shared
	paces    map[string]*pace.Pace
	// runs keeps what administrators are shown of each run.
	runs *status.Runs
}

// run makes a run. ctx ends when no further change may begin.
// The run is nil when it did not come to its end.
func (r *runner) run(ctx context.Context, g *graph.Graph, o reconcile.Options) (run *model.Run, err error) {
	defer r.ran.Notify()
	o.Command, o.Together = "muster agent", true
	defer r.runs.Begin(model.RunningRun{RunID: o.Identity.RunID, Manifest: o.Manifest, Cause: o.Cause, Started: time.Now().UTC()})()
	err = tasks.Guard(r.log, "running "+o.Manifest, func() (err error) {
		run, err = reconcile.Run(ctx, g, o)
		return err
	})
	r.hands.lock()
	defer r.hands.unlock()
	if run != nil && (run.Counts.Made() > 0 || run.Counts.Refreshed > 0) {
		r.changedAt = time.Now()
	}
	if run != nil && !run.Resumes.IsZero() {
		r.changedAt = run.Resumes // when it goes on
	}
	if !o.Env.Scope.Unchanging() && (run == nil || run.Outcome() != model.OutcomeStable) {
		r.changes++
	}

	return run, err
}

// options are those that all runs have in common. hard ends when the change in
// hand is broken off.
func (r *runner) options(hard context.Context, id string, noop bool) reconcile.Options {
	return reconcile.Options{Options: engine.Options{
		Env:      r.env(r.facts.values(), noop),
		Checker:  r.checker,
		Identity: report.Identity{Node: r.config.get().Node, Version: r.version, RunID: id},
		Grace: func(work context.Context) error {
			select {
			case <-hard.Done():
				return context.Cause(hard)
			case <-work.Done():
				return nil
			}
		},
	}}
}

// env is that of resources of no manifest.
func (r *runner) env(facts model.Facts, noop bool) resource.Env {
	return resource.Env{Host: r.host, Facts: facts, Log: r.log, Scope: resource.Scope{Noop: noop, Origin: r.loader.Origin(nil)}}
}

// journal returns the journal of a manifest. The turn is held.
func (r *runner) journal(key string) *journal.Shared {
	j := r.journals[key]
	if j == nil {
		j = journal.NewShared(journal.NewFile(r.host, r.config.get().StateDir, key))
		r.journals[key] = j
	}

	return j
}

// pace returns what counts the changes of a manifest. The turn is held.
func (r *runner) pace(key string) *pace.Pace {
	p := r.paces[key]
	if p == nil {
		p = &pace.Pace{}
		r.paces[key] = p
	}

	return p
}

// request makes the run of a request.
func (r *runner) request(ctx, hard context.Context, lane *lanes.Lane, q requests.Run) (*model.Run, error) {
	o := r.options(hard, ksuid.New().String(), q.Noop)
	o.Manifest, o.Cause, o.CorrelationID, o.Full, o.Outputs = "ensure", model.CauseEnsure, q.ID, true, true
	o.Secrets = q.Secrets
	o.OnTransaction = func(t *model.Transaction) {
		r.logTransaction(ctx, t)
		q.OnTransaction(t)
	}
	o.Locked = func(ctx context.Context, _ *reconcile.Options) (*graph.Graph, error) {
		prepare := func() (*graph.Graph, error) { return q.Graph, nil }
		waits := func(blocker *lanes.Lane) { r.runs.Wait(o.RunID, blocker.String()) }
		g, err := r.hands.await(ctx, lane, prepare, waits, func(*graph.Graph) { r.runs.Wait(o.RunID, "") })
		if err == nil {
			q.Began()
		}
		return g, err
	}

	return r.run(ctx, q.Graph, o)
}

// logTransaction logs a transaction; that of a resource that is stable, or that a limit
// puts off, only at level debug, or every run would log every resource.
func (r *runner) logTransaction(ctx context.Context, t *model.Transaction) {
	if t.Outcome() != model.OutcomeStable && t.Resumes.IsZero() || r.log.Enabled(ctx, slog.LevelDebug) {
		key := "manifest"
		if t.Within != (model.Ref{}) {
			key = "assignment" // manifest is the one that declares it
		}
		report.Log(ctx, r.log.With(key, t.Manifest), t)
	}
}

// logRun logs a summary.
func (r *runner) logRun(ctx context.Context, s *model.Run) {
	level := map[model.Outcome]slog.Level{
		model.OutcomeFailed: slog.LevelError, model.OutcomeStable: slog.LevelInfo, model.OutcomeNotRun: slog.LevelWarn,
	}[s.Outcome()]
	if !s.Resumes.IsZero() && s.Outcome() == model.OutcomeNotRun {
		level = slog.LevelInfo
	}
	// A node with nothing to do logs nothing, however often it looks.
	// Of a repair it logs the resource.
	if s.Outcome() == model.OutcomeStable && s.Cause == model.CauseSchedule || s.Outcome() == model.OutcomeChanged && s.Cause == model.CauseDrift {
		level = slog.LevelDebug
	}
	attrs := []any{
		"manifest", s.Manifest, "revision", s.Revision, "cause", s.Cause, "run_id", s.RunID,
		"duration", s.Duration.Round(time.Millisecond), "resources", s.Counts.Total, "changed", s.Counts.Made(), "failed", s.Counts.Failed,
	}
	if s.Counts.Noop > 0 {
		attrs = append(attrs, "would_change", s.Counts.Noop)
	}
	if !s.Resumes.IsZero() {
		attrs = append(attrs, "not_run", s.Counts.NotRun, "resumes", s.Resumes)
	}
	if n := len(s.Errors); n > 0 {
		attrs = append(attrs, "errors", n, "error", bounds.Text(s.Errors[0]))
	}
	r.log.Log(ctx, level, fmt.Sprintf("run %s", s.Outcome()), attrs...)
}

// unmade returns the summary of a run of an entry that did not come about.
func (r *runner) unmade(e model.Entry, digest string, cause model.Cause) *model.Run {
	return &model.Run{
		Protocol: model.ProtocolRun, RunID: ksuid.New().String(), Node: r.config.get().Node, Manifest: e.Key, Revision: e.Revision,
		Digest: digest, Cause: cause, Started: time.Now().UTC(), Version: r.version,
	}
}
