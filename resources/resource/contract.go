// Package resource is the contract that a resource type fulfils, and the
// adapter that turns a type into something the engine can run (docs/architecture.md,
// "The contract of a type").
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

// Secretive is a Spec with values that are always secret, such as a password.
// A resource that has any is sensitive.
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

// State is the observed state of one resource: a pointer to a struct that embeds
// model.CommonState. Its JSON form is what muster status prints.
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
	// Abbreviation is a short name of the type at the command line; may be empty.
	Abbreviation string
	// Ensures are the values of ensure; empty when any is allowed. The first is the default.
	Ensures []string
	// EnsureHelp describes the values of ensure, where their words are not enough or
	// Ensures is empty.
	EnsureHelp string
	// Outputs are the values that later resources may take of an Outputter.
	Outputs []Output
	// Reads are the domains that a state describes, Writes those that a change may alter.
	Reads, Writes Domain
	// Refreshes means that a refresh makes the type act.
	Refreshes bool
	// Parallel is how many unordered changes may be made at the same time, for types
	// that wait for the disk; 0 means one.
	Parallel int
	// NeedsOrigin means that the content of a resource depends on Scope.Origin.
	NeedsOrigin bool
	// OwnTimeout means that the type applies the timeout property itself.
	OwnTimeout bool
}

// Output is a value that later resources may take, with its documentation.
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
	// InTurn reports whether a resource is observed once more because its state was ErrUnsettled, when
	// it has its turn: then others do not wait for it any more than for a change.
	InTurn bool
}

// Contract is a resource type with properties S and states T. A type is also a Single or a Batcher.
// The other interfaces below are optional; Of finds the interfaces that a type implements.
type Contract[S Spec, T State] interface {
	Info() Info
	// New returns properties with their defaults.
	New() S
	// Plan returns the changes that are due. It is pure. An error is a state that
	// must not be touched.
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

// Starter is a State of something that may have been restarted by others, such
// as by the script of a package.
type Starter interface {
	// IsStartedSince reports whether it was started after a time, and so needs no
	// refresh for what changed before.
	IsStartedSince(at time.Time) bool
}

// Marker is a State of one path, with the mark of the file when it was read. An event with the same
// mark was caused by muster.
type Marker interface {
	Mark() (path string, mark files.Mark)
}

// Batcher observes and changes many resources at once, or one.
type Batcher[S Spec, T State, P Provider] interface {
	// StatusAll reads all states with one question and never changes the machine. Both results are
	// as long as specs.
	StatusAll(ctx context.Context, env Env, p P, specs []S) ([]T, []error)
	// ApplyAll makes all changes in one transaction. After an error the engine observes again and
	// makes the remaining changes one by one. After a BatchError it does this for the failed
	// changes; the other changes count as refreshed.
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

// Watcher returns the paths and units whose changes may be drift of a resource. It is pure, so
// two versions of a manifest can be compared. The caller arms the watches.
type Watcher[S Spec, P Provider] interface {
	Watches(p P, spec S) []watch.Point
}

// Relater orders the resources of a type among others.
type Relater[S Spec] interface {
	Relations(spec S) Relations
}

// Outputter returns the values that later resources may take: some or all of Info.Outputs.
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

// Adopter records a resource that a run found in its desired state, as if muster had
// changed it. The engine calls it at the end of the resource, never in noop.
type Adopter[S Spec, T State] interface {
	Adopt(ctx context.Context, env Env, spec S, state T) error
}

// Includer returns the manifest that a resource includes. The resources of that manifest become part
// of the run, before the including resource, which is observed after them (Env.Children).
type Includer[S Spec] interface {
	Include(spec S) Inclusion
}
