// Package engine runs the resources of a manifest: it observes all of them at
// once, decides on each in the order of its graph, changes what differs,
// verifies that and reports what happened. It knows the contract of types and no
// type.
package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// The variables by which a muster that a command of a run starts knows of the run.
const (
	// EnvRun are the ids of the runs it belongs to, outermost first, separated by commas.
	EnvRun = "MUSTER_RUN"
	// EnvState is the state directory of the run, where its lock is.
	EnvState = "MUSTER_STATE_DIR"
	// EnvNoop is set when it must not change anything: the resource that the command
	// is for is not changed either.
	EnvNoop = "MUSTER_NOOP"
)

// Checker makes health checks; *health.Checker is one.
type Checker interface {
	// CheckAll returns the results of checks, in their order; one that was broken off
	// because ctx ended has no status. env is added to the environment of their
	// commands.
	CheckAll(ctx context.Context, checks []model.HealthCheck, env []string) []model.HealthResult
}

// Grace waits, once the context of a run has ended, for as long as the change in
// hand may go on, and returns why it must end now. When ctx ends the change has
// ended by itself.
type Grace func(ctx context.Context) error

// GracePeriod returns a grace of a fixed length.
func GracePeriod(d time.Duration) Grace {
	return func(ctx context.Context) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return fmt.Errorf("the change in hand was still running %s after the interrupt", d)
		case <-ctx.Done():
			return nil
		}
	}
}

// Options are the options of a run.
type Options struct {
	// Identity is what the transactions have in common. An empty RunID makes one.
	Identity
	// Env is handed to the types. Its Scope says whether this is noop; its log
	// must be set. RunID, Part and RunEnv are the engine's.
	Env resource.Env
	// FailOnError stops the run at the first resource that fails.
	FailOnError bool
	// Grace is for the change in hand when the context ends; nil breaks it off.
	Grace Grace
	// Checker makes health checks; without it their results are unknown.
	Checker Checker
	// Refresh are resources to be refreshed because a health check of them is critical.
	Refresh []model.Ref
	// Register gets the entries that a resource registers while it is in its state,
	// and none when it is not. It is not called in noop, nor for a resource that the
	// run did not come to.
	Register func(ref model.Ref, entries []model.RegisterEntry)
	// Journal keeps pending refreshes; nil means that they do not outlive the run.
	Journal Journal
	// Earlier is what the earlier commands of the session did, or how the rest of the
	// manifest stands of which a part runs (plan.Standing).
	Prior plan.History
	// AlreadyConverged is passed to plan.Terms.
	AlreadyConverged func(model.Ref) bool
	// Full puts properties and status into the transactions of stable resources too.
	Full bool
	// Outputs puts what a resource gives to later ones into its transaction.
	Outputs bool
	// Check counts no executed command as a change: the commands of the run only read.
	Check bool
	// Secrets are redacted from everything the run reports, besides those of the resources.
	Secrets []model.Secret
	// Parents are the ids of the runs that this one belongs to, outermost first: the
	// processes of those hold the run lock and keep the host's record of litter.
	Parents []string
	// ReadAll reads all content again, whatever is remembered of it.
	ReadAll bool
	// OnTransaction gets each transaction as it is made, in the order of the graph.
	OnTransaction func(*model.Transaction)
	// Left gets what a resource was last seen in, at the end of its turn; nil is nobody.
	RecordOwnState func(ref model.Ref, state resource.State)
	// Limit counts a change that is about to be made to a resource, or returns until when a
	// limit puts it off; nil is no limit.
	Limit func(r *resource.Resource) (until time.Time)
	// Admit judges whether resources of a manifest that is read during the run may be
	// part of it; nil admits all. Its error may be model.Problems.
	Admit func([]*resource.Resource) error
	// Woken is when the wake-up came that led to this run, for the latency of repairs.
	Woken time.Time
	// DriftSince returns when drift of a resource was first noticed that is not repaired yet; zero,
	// and nil, is at Woken.
	DriftSince func(ref model.Ref) time.Time
}
