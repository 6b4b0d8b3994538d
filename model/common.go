package model

// Common are the properties that every resource has (spec/formats.md,
// "Properties every resource has"). A type's own properties embed it.
type Common struct {
	Name      string   `json:"name" jsonschema:"required" jsonschema_description:"Name of the managed object: a path, a command, a package"`
	Ensure    string   `json:"ensure,omitempty" jsonschema_description:"Desired state"`
	Alias     string   `json:"alias,omitempty" jsonschema_description:"Another name for the resource in require and subscribe"`
	Provider  string   `json:"provider,omitempty" jsonschema_description:"Provider; chosen for the platform by default"`
	Require   []Ref    `json:"require,omitempty" jsonschema_description:"Resources (type#name) that must succeed before this one"`
	Subscribe []Ref    `json:"subscribe,omitempty" short:"S" jsonschema_description:"Refresh this resource after a change of these resources (type#name)"`
	Control   Control  `json:"control,omitzero" jsonschema_description:"Conditions under which the resource is managed"`
	Drift     Drift    `json:"drift,omitempty" jsonschema:"enum=repair,enum=report,enum=ignore,default=repair" jsonschema_description:"What a scheduled run does about drift: repair it, only report it, or ignore it"`
	Sensitive bool     `json:"sensitive,omitempty" jsonschema_description:"Hide its values in logs, diffs and reports"`
	Noop      bool     `json:"noop,omitempty" jsonschema_description:"Only report what would change"`
	Retry     int      `json:"retry,omitempty" jsonschema:"minimum=0" jsonschema_description:"How often to retry a failed change"`
	Delay     Duration `json:"delay,omitempty" jsonschema_description:"Time between tries"`
	Timeout   Duration `json:"timeout,omitempty" jsonschema_description:"Time limit of one try"`
	Poll      Duration `json:"poll,omitempty" jsonschema_description:"Longest time between two observations by an agent"`
	Limit     int      `json:"limit,omitempty" jsonschema:"minimum=0" jsonschema_description:"Maximum number of changes per minute by an agent; 0 means no limit"`

	HealthChecks []HealthCheck `json:"health_checks,omitempty" jsonschema_description:"Checks to run once it is in its desired state; a critical one fails it"`
	// RegisterWhenStable lists services to register while the resource is in its desired state.
	RegisterWhenStable []RegisterEntry `json:"register_when_stable,omitempty" jsonschema_description:"Services to register while it is in its state and no health check is critical"`
}

// Meta returns the common properties.
func (c *Common) Meta() *Common { return c }

// Control selects by expressions whether a resource is managed: If is empty or true, and Unless is empty or
// false.
type Control struct {
	If     string `json:"if,omitempty" jsonschema_description:"Manage it only when this expression is true"`
	Unless string `json:"unless,omitempty" jsonschema_description:"Do not manage it when this expression is true"`
}

// Drift selects what an unrequested run does with a resource that is not in its desired state.
type Drift string

// The values of Drift; the zero value means DriftRepair.
const (
	DriftRepair Drift = "repair"
	DriftReport Drift = "report"
	DriftIgnore Drift = "ignore"
)

// The values of ensure that several types share.
const (
	EnsurePresent = "present"
	EnsureAbsent  = "absent"
)

// CommonState is the common part of the states of all types. Each type embeds it.
type CommonState struct {
	Protocol     string `json:"protocol"`
	ResourceType string `json:"resource_type"`
	Name         string `json:"name"`
	Ensure       string `json:"ensure"`
}

// State returns the common part.
func (c *CommonState) State() *CommonState { return c }
