package engine

import (
	"context"
	"errors"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/host/state"
)

// Options are the options of a run, beside those of the engine.
type ReconcileOptions struct {
	Options
	// JournalOf names the manifest whose pending refreshes are kept; empty keeps none.
	JournalOf string
	// Command is what others learn that wait for this run. It must not hold secrets.
	Command string
	// NoWait fails with state.ErrLocked when another run holds the lock.
	NoWait bool
	// Turn, unless it is zero, is the place of the run among those of this process that go
	// on at the same time: they hold the lock together, and always wait. Nothing of what
	// they touch may be the same; a later one may wait for an earlier one.
	Turn int
	// Within are the ids of the runs that started this one, outermost first. It
	// belongs to the innermost of them that still holds its lock.
	Within []string
	// Waited is set when another run held this one up.
	Waited bool
	// Locked is called once the lock is held, before anything is read. It may return
	// another graph, and its error ends the run; nil changes nothing.
	Locked func(ctx context.Context, o *ReconcileOptions) (*graph.Graph, error)
}

// Run runs a graph as the one run of the node, or beside others of this process; a run that
// changes nothing takes no lock. Without a summary no resource had its turn, and the error is that of
// the lock or of Options.Locked, or wraps state.ErrFormat; beside one it is about what comes after the run.
func Reconcile(ctx context.Context, g *graph.Graph, o ReconcileOptions) (run *model.Run, err error) {
	h := o.Env.Host
	if o.RunID == "" {
		o.RunID = ksuid.New().String()
	}
	if err := h.OpenState(!o.Env.Scope.Unchanging()); err != nil {
		return nil, err
	}
	unlock, err := o.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if o.JournalOf != "" {
		// Noop reads what is pending too, or it would not predict what the run does.
		o.Journal = NewFileJournal(h, h.StateDir(), o.JournalOf)
	}
	if o.Locked != nil {
		if g, err = o.Locked(ctx, &o); err != nil {
			return nil, err
		}
	}

	return Run(ctx, g, o.Options), nil
}

// lock takes the run lock of the node, or the one within the run that started
// this one.
func (o *ReconcileOptions) lock(ctx context.Context) (unlock func() error, err error) {
	h := o.Env.Host
	for checked := true; ; checked = false { // OpenState has checked it
		depth, err := h.Holding(o.Within)
		if err != nil {
			return nil, err
		}
		o.Parents = o.Within[:depth]
		if o.Env.Scope.Unchanging() {
			return func() error { return nil }, nil
		}
		take := h.Lock
		if o.Turn > 0 {
			take = h.LockTogether
		}
		unlock, err := take(ctx, state.LockOptions{
			Wait: !o.NoWait, Depth: depth, Turn: o.Turn, Checked: checked,
			Holder: state.LockHolder{Command: o.Command, RunID: o.RunID},
			OnWait: func(by state.LockHolder) {
				o.Waited = true
				o.Env.Log.InfoContext(ctx, "waiting for another run", "holder", by.String())
			},
		})
		if err != nil {
			return nil, err
		}
		// The run that started this one may have ended while it waited, and another begun.
		if now, err := h.Holding(o.Within); err == nil && now == depth {
			return unlock, nil
		} else if err := errors.Join(err, unlock()); err != nil {
			return nil, err
		}
	}
}
