// Package resource is the contract of a resource type, and the adapter that makes a type executable for the
// engine (docs/architecture.md, "The contract of a type").
package resource

import (
	"context"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
)

// Spec is the properties of one resource: a pointer to a struct that embeds
// model.Common. Manifest keys, schemas and command-line flags are derived from
// the tags of its fields (json, alias, jsonschema, jsonschema_description).
type Spec interface {
	Meta() *model.Common
	// Validate reports every problem at once, by property. It reads only the spec.
	Validate() model.Problems
}

// Secretive is a Spec with values that are always secret, such as a password. A resource with
// such values is sensitive.
type Secretive interface {
	Secrets() []model.Secret
}

// CanonicalNamer is a Spec with several names for the same thing, such as app and app.service. A manifest
// must declare only one of them.
type CanonicalNamer interface {
	// CanonicalName returns the canonical name. If other properties are deferred, only the name is
	// set.
	CanonicalName() string
}

// State is the observed state of one resource: a pointer to a struct that embeds
// model.CommonState. muster status prints its JSON form.
type State interface {
	State() *model.CommonState
}

// Info describes a type.
type Info struct {
	// Name is the type's name in manifests.
	Name string
	// Summary is one sentence for help texts and documentation.
	Summary string
	// NameHelp describes the name of a resource.
	NameHelp string
	// Argument is the property that `muster ensure` accepts as an argument after the name; may be empty.
	Argument string
	// Family is the common name of types whose resources share the calls StatusAll and ApplyAll. These types have
	// the same S, an interface, and the same states, providers and domains. It is empty for a single type.
	Family string
	// Abbreviation is a short name of the type at the command line; may be empty.
	Abbreviation string
	// Ensures are the values of ensure; empty when any is allowed. The first is the default.
	Ensures []string
	// EnsureHelp describes the values of ensure, if they do not explain themselves or Ensures is empty.
	EnsureHelp string
	// Outputs are the values that an Outputter offers to later resources.
	Outputs []Output
	// Reads are the domains of a state, and Writes are the domains that a change may alter.
	Reads, Writes Domain
	// Refreshes means that a refresh causes a change.
	Refreshes bool
	// Parallel is the maximum number of parallel changes without an order, for types that wait for the disk;
	// 0 means one.
	Parallel int
	// NeedsOrigin means that the content of a resource depends on Scope.Origin.
	NeedsOrigin bool
	// OwnTimeout means that the type applies the timeout property itself.
	OwnTimeout bool
}

// Output is a value for later resources, with its documentation.
type Output struct{ Name, Help string }

// Env is the environment of every call of a type.
type Env struct {
	Host  *host.Host
	Facts model.Facts
	Log   *slog.Logger
	Scope Scope
	// Children counts the outcomes of the resources that a resource includes.
	Children model.Counts
	// RunEnv is the environment of commands. A muster in a command learns from it which run it joins,
	// and whether it may change anything.
	RunEnv []string
	// RunID is the id of the run, for work that is done once for each run; it is empty outside of a run.
	RunID string
	// Part reports whether the run covers only a part of its manifest, such as a repair of drift. Such a
	// run skips the precautions that a run takes once.
	Part bool
	// InTurn reports that a resource is observed once more, alone, because its state was ErrUnsettled. Other
	// resources wait for this observation as for a change.
	InTurn bool
}

// Contract is a resource type with properties S and states T. A type is also a Single or a Batcher.
// The other interfaces below are optional; Of finds the interfaces that a type implements.
type Contract[S Spec, T State] interface {
	Info() Info
	// New returns properties with their defaults.
	New() S
	// Plan returns the pending changes. It is pure. It returns an error for a state that must not be
	// changed.
	Plan(spec S, state T, refresh bool) (Plan, error)
}

// Single observes and changes one resource at a time.
type Single[S Spec, T State, P Provider] interface {
	// Status reads the machine and never changes it.
	Status(ctx context.Context, env Env, p P, spec S) (T, error)
	// Apply makes the changes of a plan. Only it may change the machine.
	Apply(ctx context.Context, env Env, p P, spec S, plan Plan) (Outcome, error)
}

// Verifier judges the state after Apply. Without it the plan of that state,
// without a refresh, must be empty. Its error is wrapped in model.ErrDesiredStateFailed.
type Verifier[S Spec, T State] interface {
	Verify(spec S, outcome Outcome, after T) error
}

// Preparer makes changes before an observation, for all observed resources of a provider, never in noop. If T
// is a Reloader, a state requests them; other types prepare before each observation. A run that stops
// interrupts Prepare, so an interruption must be safe.
type Preparer[S Spec, P Provider] interface {
	Prepare(ctx context.Context, env Env, p P, specs []S) error
}

// Reloader is a State that may be stale.
type Reloader interface {
	// NeedsReload reports that this state is stale; the engine then calls Prepare
	// and observes once more.
	NeedsReload() bool
}

// Starter is a State of something that others may have restarted, such as the script of a package.
type Starter interface {
	// IsStartedSince reports whether it was started after a time, so earlier changes need no
	// refresh.
	IsStartedSince(at time.Time) bool
}

// Marker is a State of one path, with the mark of the file when it was read. An event with the same
// mark was caused by muster.
type Marker interface {
	Mark() (path string, mark files.Mark)
}

// Batcher observes and changes many resources at once, or one.
type Batcher[S Spec, T State, P Provider] interface {
	// StatusAll reads all states with one query and never changes the machine. Both results have the length
	// of specs.
	StatusAll(ctx context.Context, env Env, p P, specs []S) ([]T, []error)
	// ApplyAll makes all changes in one transaction. After an error the engine observes again and
	// makes the remaining changes one by one. After a BatchError it does this for the failed
	// changes; the other changes count as refreshed.
	ApplyAll(ctx context.Context, env Env, p P, specs []S, plans []Plan) ([]Outcome, error)
}

// Guards are the commands in a manifest that decide whether a change is made. The engine runs them once, when
// the run reaches the resource, also in noop.
type Guards[S Spec, T State, P Provider] interface {
	// HasGuards reports whether the plan for this state depends on guards.
	HasGuards(spec S, state T, refresh bool) bool
	// EvalGuards runs the guards and returns the state with their results.
	EvalGuards(ctx context.Context, env Env, p P, spec S, state T) (T, error)
}

// Watcher returns the paths and units whose changes may be drift of a resource. It is pure, so
// two versions of a manifest can be compared. The caller arms the watches.
type Watcher[S Spec, P Provider] interface {
	Watches(p P, spec S) []watch.Point
}

// Relater orders the resources of a type among others.
type Relater[S Spec] interface {
	Relations(spec S) Relations
}

// Claimer returns the paths that a resource manages, so that no two resources undo each other's work. It is
// pure.
type Claimer[S Spec] interface {
	Claims(spec S) []Claim
}

// Outputter returns values for later resources: some or all of Info.Outputs.
type Outputter[S Spec, T State] interface {
	Outputs(spec S, state T, outcome Outcome) map[string]any
}

// Inclusion is a manifest that a resource includes.
type Inclusion struct {
	// Source is its path, relative to the manifest that includes it.
	Source string
	// Data overrides the data of the included manifest.
	Data map[string]any
	// Noop, HealthCheckOnly and DenyApply strengthen its scope.
	Noop, HealthCheckOnly, DenyApply bool
}

// Adopter records a resource that was already in its desired state, as if muster had changed it. The
// engine calls it after the resource, never in noop.
type Adopter[S Spec, T State] interface {
	Adopt(ctx context.Context, env Env, spec S, state T) error
}

// Includer returns the manifest that a resource includes. The resources of that manifest become part
// of the run, before the including resource, which is observed after them (Env.Children).
type Includer[S Spec] interface {
	Include(spec S) Inclusion
}
