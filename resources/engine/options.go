// Package engine runs the resources of a manifest. It observes all resources, decides on each in
// the order of the graph, changes the resources that differ, verifies them, and reports the result.
// It knows the contract of a type, but no type.
package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

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

// Checker runs health checks. *health.Checker implements it.
type Checker interface {
	// CheckAll returns the results of checks in their order. The result of an interrupted check has
	// no status. env is added to the environment of their commands.
	CheckAll(ctx context.Context, checks []model.HealthCheck, env []string) []model.HealthResult
}

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
