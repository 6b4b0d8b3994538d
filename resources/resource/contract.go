// Package resource is the contract that a resource type fulfils, and the
// adapter that turns a type into something the engine can run (docs/architecture.md,
// "The contract of a type").
package resource

import (
	"context"
	"log/slog"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
)

// Spec is the properties of one resource: a pointer to a struct that embeds
// model.Common. Field tags (json, alias, jsonschema, jsonschema_description)
// say the names of its properties; manifest keys, schemas and command-line
// flags are derived from them.
type Spec interface {
	Meta() *model.Common
	// Validate reports every problem at once, by property. It looks at nothing but the spec.
	Validate() model.Problems
}

// Secretive is a Spec with values that are secret by what they are, such as a
// password, wherever they were written. They are treated as those that came
// out of a secret: nothing of the resource's values is ever shown.
type Secretive interface {
	Secrets() []model.Secret
}

// CanonicalNamer is a Spec where several names mean one thing, such as app and
// app.service, which must not be declared twice.
type CanonicalNamer interface {
	// CanonicalName returns the one name of what the resource manages. Only the name
	// is known where other properties are late.
	CanonicalName() string
}

// State is what the machine says of one resource: a pointer to a struct that
// embeds model.CommonState. Its JSON form is what muster status prints.
type State interface {
	State() *model.CommonState
}

// Info is what a type says of itself.
type Info struct {
	// Name is the type's name in manifests.
	Name string
	// Summary is one sentence for help texts and documentation.
	Summary string
	// NameHelp says what the name of such a resource is.
	NameHelp string
	// Ensures are the values of ensure; empty when any is allowed. The first is the default.
	Ensures []string
	// EnsureHelp says what the values of ensure mean, or which are allowed where
	// Ensures is empty; empty where their words say it all.
	EnsureHelp string
	// Outputs are the values that later resources may take of an Outputter.
	Outputs []Output
	// Reads are the domains that a state describes, Writes those a change may alter.
	Reads, Writes Domain
	// Refreshes says that a refresh makes the type act.
	Refreshes bool
	// Parallel is how many changes of the type may be made at the same time where
	// nothing orders them; 0 means one after the other. It is for types that
	// wait for the disk, not for the machine.
	Parallel int
	// NeedsOrigin means that the content of a resource depends on Scope.Origin.
	NeedsOrigin bool
	// OwnTimeout says that the type applies the timeout property itself.
	OwnTimeout bool
}

// Output is a value that later resources may take, by its name.
type Output struct {
	Name string
	// Help is for documentation.
	Help string
}

// Env is what a type is handed with every call.
type Env struct {
	Host  *host.Host
	Facts model.Facts
	Log   *slog.Logger
	Scope Scope
	// Children says, to a type that includes manifests, what came of the included resources.
	Children model.Counts
	// RunEnv tells a muster that a command starts which run it belongs to, and
	// whether it may change anything.
	RunEnv []string
	// RunID names the run, for what is done once in each; empty outside of one.
	RunID string
}

// Contract is what a type fulfils, for its properties S, its state T and its
// provider interface P. What is optional stands in interfaces of one method
// each, below; Of finds out which of them a type has.
type Contract[S Spec, T State, P Provider] interface {
	Info() Info
	// New gives properties with their defaults.
	New() S
	Providers() []P
	// Status reads the machine and never changes it.
	Status(ctx context.Context, env Env, p P, spec S) (T, error)
	// Plan is pure: the changes that are due. An error is a state that it must not touch.
	Plan(spec S, state T, refresh bool) (Plan, error)
	// Apply is the only method that may change the machine.
	Apply(ctx context.Context, env Env, p P, spec S, plan Plan) (Outcome, error)
}

// Verifier judges the state after Apply. Without it the plan of that state,
// without a refresh, must be empty. What it returns is wrapped in
// model.ErrDesiredStateFailed.
type Verifier[S Spec, T State] interface {
	Verify(spec S, outcome Outcome, after T) error
}

// Preparer makes the changes that an observation needs first, for all resources
// of a provider that are observed, never in noop. Where T is a Reloader, a state
// asks for it; other types prepare before each observation. A run that stops
// interrupts it, so it must be safe to stop halfway.
type Preparer[S Spec, P Provider] interface {
	Prepare(ctx context.Context, env Env, p P, specs []S) error
}

// Reloader is a State that may be stale.
type Reloader interface {
	// NeedsReload reports that this state is stale; the engine then calls Prepare
	// and observes once more.
	NeedsReload() bool
}

// Batcher observes and changes many resources at once.
type Batcher[S Spec, T State, P Provider] interface {
	// StatusAll reads all states with one question. Both results are as long as specs.
	StatusAll(ctx context.Context, env Env, p P, specs []S) ([]T, []error)
	// ApplyAll makes all changes in one transaction. After an error the engine
	// observes again and applies what is still due one by one. After a BatchError it
	// does so for those that failed; the others count as refreshed.
	ApplyAll(ctx context.Context, env Env, p P, specs []S, plans []Plan) ([]Outcome, error)
}

// Guards are the commands that a manifest names to decide whether a change is
// made. The engine runs them once, at the resource's turn, also in noop.
type Guards[S Spec, T State, P Provider] interface {
	// HasGuards reports whether the plan for this state depends on guards.
	HasGuards(spec S, state T, refresh bool) bool
	// EvalGuards runs the guards and returns the state with their results.
	EvalGuards(ctx context.Context, env Env, p P, spec S, state T) (T, error)
}

// Watcher calls wake with the name of a resource whenever the machine may have
// drifted from it, until ctx ends. It calls ready once its watches are armed.
type Watcher[S Spec] interface {
	Watch(ctx context.Context, env Env, specs []S, ready func(), wake func(name string)) error
}

// Relater orders the resources of a type among others.
type Relater[S Spec] interface {
	Relations(spec S) Relations
}

// Outputter gives the values that later resources may take: those of Info.Outputs,
// or some of them.
type Outputter[S Spec, T State] interface {
	Outputs(spec S, state T, outcome Outcome) map[string]any
}

// Inclusion is a manifest that a resource stands for.
type Inclusion struct {
	// Source is its path; a relative one is beside the manifest that includes it.
	Source string
	// Data win over those of the included manifest.
	Data map[string]any
	// Noop, HealthCheckOnly and DenyApply strengthen the scope it gets.
	Noop, HealthCheckOnly, DenyApply bool
}

// Includer says which manifest a resource stands for. Its resources become part
// of the run, in front of the one that includes them, which is looked at once
// they have had their turns (Env.Children).
type Includer[S Spec] interface {
	Include(spec S) Inclusion
}
