package engine

import (
	"context"
	"errors"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/host/state"
)

// ReconcileOptions are the options of Reconcile.
type ReconcileOptions struct {
	Options
	// JournalOf names the manifest of the journal; empty means no journal.
	JournalOf string
	// Command describes this run to runs that wait for it. It must not contain secrets.
	Command string
	// NoWait fails with state.ErrLocked if another run holds the lock.
	NoWait bool
	// Seq orders the concurrent runs of this process; 0 is for a run that excludes all others.
	// Concurrent runs share the lock and always wait for it. They must not touch the same
	// resources. A later run may wait for an earlier run.
	Seq int
	// StartedBy are the ids of the runs that started this run, outermost first. This run belongs to
	// the innermost of them that still holds its lock.
	StartedBy []string
	// Waited is set if this run waited for another run.
	Waited bool
	// Locked is called while the lock is held, before anything is read. It returns the graph and the
	// options of the run. An error ends the run. Nil keeps both.
	Locked func(ctx context.Context, o ReconcileOptions) (*graph.Graph, Options, error)
}

// Reconcile is the only entry point for running resources. It takes the run lock of the node,
// unless the run is read-only, opens the journal and runs the graph. Without a summary, no resource
// ran, and the error is the error of the lock or of Locked, or wraps state.ErrFormat. With a
// summary, the error is about releasing the lock.
func Reconcile(ctx context.Context, g *graph.Graph, o ReconcileOptions) (run *model.Run, err error) {
	h := o.Env.Host
	if o.RunID == "" {
		o.RunID = ksuid.New().String()
	}
	if err := h.OpenState(!o.Env.Scope.ReadOnly()); err != nil {
		return nil, err
	}
	unlock, err := o.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if o.JournalOf != "" {
		// Noop also reads the pending refreshes, to predict what a run does.
		o.Journal = NewFileJournal(h, h.StateDir(), o.JournalOf)
	}
	if o.Locked != nil {
		if g, o.Options, err = o.Locked(ctx, o); err != nil {
			return nil, err
		}
	}

	return newRun(g, o.Options).do(ctx), nil
}

// lock takes the run lock of the node, or the nested lock within the run that started this run.
func (o *ReconcileOptions) lock(ctx context.Context) (unlock func() error, err error) {
	h := o.Env.Host
	for checked := true; ; checked = false { // OpenState has checked it
		depth, err := h.Holding(o.StartedBy)
		if err != nil {
			return nil, err
		}
		o.Parents = o.StartedBy[:depth]
		if o.Env.Scope.ReadOnly() {
			return func() error { return nil }, nil
		}
		take := h.Lock
		if o.Seq > 0 {
			take = h.LockTogether
		}
		unlock, err := take(ctx, state.LockOptions{
			Wait: !o.NoWait, Depth: depth, Seq: o.Seq, Checked: checked,
			Holder: state.LockHolder{Command: o.Command, RunID: o.RunID},
			OnWait: func(by state.LockHolder) {
				o.Waited = true
				o.Env.Log.InfoContext(ctx, "waiting for another run", "holder", by.String())
			},
		})
		if err != nil {
			return nil, err
		}
		// While this run waited, the run that started it may have ended and another may have
		// started.
		if now, err := h.Holding(o.StartedBy); err == nil && now == depth {
			return unlock, nil
		} else if err := errors.Join(err, unlock()); err != nil {
			return nil, err
		}
	}
}
