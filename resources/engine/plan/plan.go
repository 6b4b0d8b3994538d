// Package plan decides what is due to a resource. It is pure: a decision
// depends on the graph, on what was observed and on what came of the resources
// before, and on no host, clock or log.
package plan

import (
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// Kind is what a Decision comes to.
type Kind uint8

// The kinds.
const (
	// Stable is a resource in its desired state.
	Stable Kind = iota
	// Change is a plan that is due: Plan and Refresh are set.
	Change
	// Skip is a resource that gets no turn: Reason, and NotRun or Unmet are set.
	Skip
	// Unknown is a resource of which noop cannot know what would be done: Until is set.
	Unknown
	// Wait asks for something first, after which Decide is called again: For is set.
	Wait
	// Fail is a resource that cannot be observed or must not be touched: Err is set.
	Fail
	// CheckOnly is a resource of which only the health checks are made.
	CheckOnly
)

// Need is what a decision waits for.
type Need uint8

// The needs.
const (
	// Properties are those that were late: they are known at the resource's turn.
	Properties Need = iota
	// State is an observation that is missing or not valid any more.
	State
	// Guards are the commands by which the manifest guards the resource.
	Guards
	// Manifest is the one that the resource includes, not read yet.
	Manifest
	// Creator is another resource that creates on its way what is missing here: it
	// has its turn first.
	Creator
)

// Decision is what is due to a resource at its turn.
type Decision struct {
	Kind Kind
	// Plan and Refresh are what a Change makes. Refresh is also set for a Stable
	// resource whose refresh is due and needs nothing done.
	Plan    resource.Plan
	Refresh bool
	// Reason is why a resource is skipped, or what an Unknown one waits for.
	Reason string
	// NotRun marks a Skip because the run or the manifest has ended, or because of a limit:
	// then PutOff is until when.
	NotRun  bool
	RetryAt time.Time
	// Unmet are the requirements that a Skip lacks.
	Unmet []model.Ref
	// Until is the resource after which an Unknown one is known; of a Change in noop,
	// after which its guards can be believed, nil where they can be already.
	Until *graph.Node
	// More is, of a Change in noop, the resource that may make more due; nil for none.
	More *graph.Node
	For  Need
	// Creator is the node that a Wait for Creator is for.
	Creator *graph.Node
	Err     error
}

// Observation is what is known of a resource when it is decided on.
type Observation struct {
	// Spec are its properties, nil while late ones are not resolved.
	Spec  resource.Spec
	State resource.State
	// Valid means that nothing has changed since what State describes.
	Valid bool
	// Guarded means that State includes the answers of its guards.
	Guarded bool
	// Err is why what was waited for could not be had. It replaces State, and
	// GuardErr for the answers.
	Err, GuardErr error
}

// Effect is what a resource does to those after it in noop.
type Effect uint8

// The effects.
const (
	// None changes nothing.
	None Effect = iota
	// Planned would change something.
	Planned
	// Unsettled may change something: nobody knows before Result.Until is applied.
	Unsettled
)

// Upstream is what a run knows when a resource has its turn.
type Upstream struct {
	Terms
	Graph *graph.Graph
	// Results are those of the nodes, by their place in the graph.
	Results Results
	Prior   History
	// Pending are the refreshes that are due from earlier in this run or from earlier
	// runs, Requested those that a caller asks for.
	Pending   map[model.Ref]bool
	Requested []model.Ref
	// Stopped is why the rest of the run does not run, Ended why the manifest that
	// a resource includes does not go on.
	Stopped string
	Ended   map[model.Ref]string
}
