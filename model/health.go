package model

import "time"

// HealthStatus is what a health check came to, in the words of Nagios.
type HealthStatus string

// The statuses. Only HealthCritical fails a resource.
const (
	HealthOK       HealthStatus = "ok"
	HealthWarning  HealthStatus = "warning"
	HealthCritical HealthStatus = "critical"
	// HealthUnknown is a check that could not be made.
	HealthUnknown HealthStatus = "unknown"
)

// HealthFormat is how a health check tells its status.
type HealthFormat string

// The formats.
const (
	// HealthNagios is a command that tells its status by its exit code.
	HealthNagios HealthFormat = "nagios"
	// HealthGoss are rules that goss evaluates.
	HealthGoss HealthFormat = "goss"
)

// OnCritical is what an agent does besides repairing the resource of a critical check.
type OnCritical string

// OnCriticalRefresh refreshes it.
const OnCriticalRefresh OnCritical = "refresh"

// GossRules are rules of goss: attributes by the name of what is looked at, by
// its kind, as in a goss.yaml.
type GossRules map[string]map[string]map[string]any

// HealthCheck is one entry of the property health_checks (spec/formats.md,
// "Health checks"). One of Command and GossRules is set.
type HealthCheck struct {
	Name       string       `json:"name,omitempty" jsonschema_description:"What the check is called; by default the program's name, or goss"`
	Command    string       `json:"command,omitempty" jsonschema_description:"A command whose exit code is the status: 0 ok, 1 warning, 2 critical, others unknown"`
	GossRules  GossRules    `json:"goss_rules,omitempty" jsonschema_description:"Rules of goss, by kind and name; critical unless all of them hold"`
	Tries      *int         `json:"tries,omitempty" jsonschema:"default=1" jsonschema_description:"How often it is made at most until it is ok"`
	TrySleep   *Duration    `json:"try_sleep,omitempty" jsonschema:"default=1s" jsonschema_description:"How long to wait between tries"`
	Timeout    *Duration    `json:"timeout,omitempty" jsonschema:"default=1m" jsonschema_description:"How long one try may take; one that takes longer is critical"`
	Format     HealthFormat `json:"format,omitempty" jsonschema:"enum=nagios,enum=goss" jsonschema_description:"nagios for a command, goss for rules"`
	OnCritical OnCritical   `json:"on_critical,omitempty" jsonschema:"enum=refresh" jsonschema_description:"refresh also refreshes the resource in the repairing run that a critical check makes an agent begin"`
}

// HealthResult is what came of one health check.
type HealthResult struct {
	Name   string       `json:"name"`
	Status HealthStatus `json:"status" jsonschema:"enum=ok,enum=warning,enum=critical,enum=unknown"`
	// Tries is how often it was made.
	Tries    int           `json:"tries" jsonschema_description:"How often it was made"`
	Output   string        `json:"output,omitempty" jsonschema_description:"What it said, bounded; absent for a sensitive resource"`
	Duration time.Duration `json:"duration" jsonschema_description:"Nanoseconds, all tries together"`
	Format   HealthFormat  `json:"format" jsonschema:"enum=nagios,enum=goss"`
}

// HealthCounts are health checks by their status.
type HealthCounts struct {
	OK       int `json:"ok"`
	Warning  int `json:"warning"`
	Critical int `json:"critical"`
	Unknown  int `json:"unknown"`
}

// Add counts one status.
func (c *HealthCounts) Add(s HealthStatus) {
	switch s {
	case HealthOK:
		c.OK++
	case HealthWarning:
		c.Warning++
	case HealthCritical:
		c.Critical++
	default:
		c.Unknown++
	}
}

// HealthReport reports that a health check has another status than it had
// (io.muster.v1.health).
type HealthReport struct {
	Protocol string       `json:"protocol"`
	Node     string       `json:"node"`
	Manifest string       `json:"manifest" jsonschema_description:"The manifest's key in the bucket"`
	Resource Ref          `json:"resource"`
	Check    string       `json:"check" jsonschema_description:"Name of the check"`
	Status   HealthStatus `json:"status" jsonschema:"enum=ok,enum=warning,enum=critical,enum=unknown"`
	// Was is the status before; empty since the agent's start.
	Was    HealthStatus `json:"was,omitempty" jsonschema:"enum=ok,enum=warning,enum=critical,enum=unknown" jsonschema_description:"Its status before; absent for the first one since the agent was started"`
	Output string       `json:"output,omitempty"`
	At     time.Time    `json:"at"`
	RunID  string       `json:"run_id,omitempty"`
}
