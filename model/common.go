package model

// Common are the properties that every resource has (spec/formats.md,
// "Properties every resource has"). A type's own properties embed it.
type Common struct {
	Name      string   `json:"name" jsonschema:"required" jsonschema_description:"What the resource is about: a path, a command, a package"`
	Ensure    string   `json:"ensure,omitempty" jsonschema_description:"The state it must be in"`
	Alias     string   `json:"alias,omitempty" jsonschema_description:"Another name for it in require and subscribe"`
	Provider  string   `json:"provider,omitempty" jsonschema_description:"How it is done; chosen by the platform when unset"`
	Require   []Ref    `json:"require,omitempty" jsonschema_description:"Resources (type#name) that must have succeeded before this one"`
	Subscribe []Ref    `json:"subscribe,omitempty" jsonschema_description:"Resources (type#name) whose change refreshes this one"`
	Control   Control  `json:"control,omitzero" jsonschema_description:"Whether it is managed at all"`
	Drift     Drift    `json:"drift,omitempty" jsonschema:"enum=repair,enum=report,enum=ignore,default=repair" jsonschema_description:"What a run that was not asked for a change does when the machine differs: repair it, only report it, or not look"`
	Sensitive bool     `json:"sensitive,omitempty" jsonschema_description:"Show nothing of its values in logs, diffs and reports"`
	Noop      bool     `json:"noop,omitempty" jsonschema_description:"Only say what would be changed"`
	Retry     int      `json:"retry,omitempty" jsonschema:"minimum=0" jsonschema_description:"How many more times a failed change is tried"`
	Delay     Duration `json:"delay,omitempty" jsonschema_description:"How long to wait between tries"`
	Timeout   Duration `json:"timeout,omitempty" jsonschema_description:"How long one try may take"`
	Poll      Duration `json:"poll,omitempty" jsonschema_description:"How often an agent looks at it at the latest"`

	HealthChecks []HealthCheck `json:"health_checks,omitempty" jsonschema_description:"What must hold when it is in its state; a critical check fails it"`
	// RegisterWhenStable are registered while the resource is in its state.
	RegisterWhenStable []RegisterEntry `json:"register_when_stable,omitempty" jsonschema_description:"Services to register while it is in its state and no health check is critical"`
}

// Meta returns the common properties of whatever embeds them.
func (c *Common) Meta() *Common { return c }

// Control decides by expressions whether a resource is managed: it is when If
// is unset or true, and Unless is unset or false.
type Control struct {
	If     string `json:"if,omitempty" jsonschema_description:"An expression that must be true"`
	Unless string `json:"unless,omitempty" jsonschema_description:"An expression that must be false"`
}

// Drift is what a run does with a resource that differs although nobody asked
// for a change.
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

// CommonState is what the state of every resource says. A type's own state
// embeds it.
type CommonState struct {
	Protocol     string `json:"protocol"`
	ResourceType string `json:"resource_type"`
	Name         string `json:"name"`
	Ensure       string `json:"ensure"`
}

// State returns the common part of whatever embeds it.
func (c *CommonState) State() *CommonState { return c }
