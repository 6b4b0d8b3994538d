// Package engine runs the resources of a manifest. It observes all resources, decides on each in
// the order of the graph, changes the resources that differ, verifies them, and reports the result.
// It knows the contract of a type, but no type.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/resource"
)

// ReconcileOptions are the options of Reconcile.
type ReconcileOptions struct {
	Options
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
	Locked func(ctx context.Context, o ReconcileOptions) (*plan.Graph, Options, error)
}

// Reconcile is the only entry point for running resources. It takes the run lock of the node,
// unless the run is read-only, and runs the graph. Without a summary, no resource ran, and the error
// is the error of the lock or of Locked, or wraps state.ErrFormat. With a summary, the error is about
// releasing the lock.
func Reconcile(ctx context.Context, g *plan.Graph, o ReconcileOptions) (run *model.Run, err error) {
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
	for {
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
			Wait: !o.NoWait, Depth: depth, Seq: o.Seq,
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

// These variables pass a run to a muster process that a command of the run starts.
const (
	// EnvRun lists the ids of the runs that the process belongs to, outermost first, separated by
	// commas.
	EnvRun = "MUSTER_RUN"
	// EnvState is the state directory of the run. It contains the run lock.
	EnvState = "MUSTER_STATE_DIR"
	// EnvNoop is set if the process must not change anything, because the resource of the command
	// is in noop.
	EnvNoop = "MUSTER_NOOP"
)

// Grace waits after the context of a run has ended, and returns the reason to interrupt the current
// change. Its own ctx ends when the change has ended.
type Grace func(ctx context.Context) error

// GracePeriod returns a Grace with a fixed duration.
func GracePeriod(d time.Duration) Grace {
	return func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return fmt.Errorf("the change was still running %s after the interrupt", d)
		case <-ctx.Done():
			return nil
		}
	}
}

// Options are the options of a run.
type Options struct {
	// Identity is common to all transactions. Run creates an empty RunID.
	Identity
	// Env is passed to the types. Env.Scope sets noop. Env.Log is required. The engine sets RunID,
	// Part and RunEnv.
	Env resource.Env
	// FailOnError stops the run at the first failed resource.
	FailOnError bool
	// Grace limits the current change after the context has ended; nil interrupts it.
	Grace Grace
	// Checker runs health checks; nil makes their results unknown.
	Checker Checker
	// Refresh are the resources to refresh because of a critical health check.
	Refresh []model.Ref
	// Register receives the registrations of a resource in its desired state, and nil for a
	// resource that is not. It is not called in noop, or for a resource that did not run.
	Register func(ref model.Ref, entries []model.RegisterEntry)
	// Journal stores pending refreshes; nil loses them at the end of the run.
	Journal Journal
	// Prior is the history of earlier commands of the session, or the state of the rest of the
	// manifest in the run of a part (plan.HistoryForPartial).
	Prior plan.History
	// AlreadyConverged is passed to plan.Terms.
	AlreadyConverged func(model.Ref) bool
	// Full adds properties and status to the transactions of stable resources.
	Full bool
	// Outputs adds the outputs of a resource to its transaction.
	Outputs bool
	// Check counts no executed command as a change, because the commands of the run only read.
	Check bool
	// Secrets are redacted from all reports, in addition to the secrets of the resources.
	Secrets []model.Secret
	// Parents are the ids of the enclosing runs, outermost first. Their processes hold the run lock
	// and record the temporary files of the host.
	Parents []string
	// ReadAll reads all content again and ignores cached hashes.
	ReadAll bool
	// OnTransaction receives each transaction in the order of the graph.
	OnTransaction func(*model.Transaction)
	// RecordOwnState receives the last observed state of each resource after it ran; nil for no
	// receiver.
	RecordOwnState func(ref model.Ref, state resource.State)
	// Limit counts a change before it is made. A time in the future defers the change until then.
	// Nil means no limit.
	Limit func(r *resource.Resource) (until time.Time)
	// Admit checks whether the run may contain the resources of a manifest that is read during the
	// run. Its error may be model.Problems. Nil admits all.
	Admit func([]*resource.Resource) error
	// Woken is the time of the event that caused the run, for the latency of repairs.
	Woken time.Time
	// DriftSince returns the time when an unrepaired drift of a resource was detected. Zero, and a
	// nil function, mean Woken.
	DriftSince func(ref model.Ref) time.Time
}

// Status observes the last of resources and changes nothing. The resources before it are the
// resources of the manifest that it includes; its state is the result of a noop run of them. The
// error is the error of selecting a provider or of observing.
func Status(ctx context.Context, env resource.Env, resources []*resource.Resource) (resource.State, error) {
	target := resources[len(resources)-1]
	if target.Type.Include != nil {
		return statusOfIncluded(ctx, env, resources)
	}
	var state resource.State
	err := plan.Protect(func() error {
		p, err := target.Type.Select(env.Facts, target.Spec)
		if err != nil {
			return err
		}
		state, err = target.Type.Status(ctx, env, p, target.Spec)
		return err
	})
	if err != nil {
		return nil, err
	}

	return state, nil
}

func statusOfIncluded(ctx context.Context, env resource.Env, resources []*resource.Resource) (resource.State, error) {
	g, err := plan.Build(resources, func(model.Ref) bool { return true })
	if err != nil {
		return nil, err
	}
	env.Scope.Noop, env.Log = true, slog.New(slog.DiscardHandler) // the caller needs only the state
	r := newRun(g, Options{Env: env})
	r.do(ctx)
	if state := r.observer.state(r.Graph.Node(resources[len(resources)-1].Ref())); state != nil {
		return state, nil
	}

	return nil, errors.New(strings.Join(r.report.summary.Errors, "; "))
}
