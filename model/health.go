package model

import "time"

// HealthStatus is the result of a health check, in the words of Nagios.
type HealthStatus string

// The statuses. Only HealthCritical fails a resource.
const (
	HealthOK       HealthStatus = "ok"
	HealthWarning  HealthStatus = "warning"
	HealthCritical HealthStatus = "critical"
	// HealthUnknown means that the check could not run.
	HealthUnknown HealthStatus = "unknown"
)

// HealthFormat is the kind of a health check.
type HealthFormat string

// The formats.
const (
	// HealthNagios is a command with the status as its exit code.
	HealthNagios HealthFormat = "nagios"
	// HealthGoss is a set of goss rules.
	HealthGoss HealthFormat = "goss"
)

// OnCritical is an action of the agent in addition to the repair of a resource with a critical check.
type OnCritical string

// OnCriticalRefresh refreshes the resource.
const OnCriticalRefresh OnCritical = "refresh"

// CriticalOn selects the critical exit codes of a command. By default exit codes follow the
// convention of Nagios.
type CriticalOn string

// CriticalOnNonzero makes every exit code except 0 critical.
const CriticalOnNonzero CriticalOn = "nonzero"

// GossRules are rules of goss: kind, name, attributes, as in a goss.yaml.
type GossRules map[string]map[string]map[string]any

// HealthCheck is one entry of the property health_checks (spec/formats.md,
// "Health checks"). One of Command and GossRules is set.
type HealthCheck struct {
	Name       string       `json:"name,omitempty" jsonschema_description:"Name of the check; default: the program's name, or goss"`
	Command    string       `json:"command,omitempty" jsonschema_description:"Command; its exit code is the status: 0 ok, 1 warning, 2 critical, others unknown"`
	GossRules  GossRules    `json:"goss_rules,omitempty" jsonschema_description:"goss rules by kind and name; critical unless all hold"`
	Tries      *int         `json:"tries,omitempty" jsonschema:"default=1" jsonschema_description:"Maximum number of tries until it is ok"`
	TrySleep   *Duration    `json:"try_sleep,omitempty" jsonschema:"default=1s" jsonschema_description:"Time between tries"`
	Timeout    *Duration    `json:"timeout,omitempty" jsonschema:"default=1m" jsonschema_description:"Time limit of one try; a timeout is critical"`
	Format     HealthFormat `json:"format,omitempty" jsonschema:"enum=nagios,enum=goss" jsonschema_description:"nagios for a command, goss for rules"`
	CriticalOn CriticalOn   `json:"critical_on,omitempty" jsonschema:"enum=nonzero" jsonschema_description:"nonzero: every exit code of the command except 0 is critical"`
	OnCritical OnCritical   `json:"on_critical,omitempty" jsonschema:"enum=refresh" jsonschema_description:"refresh: the run that repairs after a critical check also refreshes the resource"`
}

// HealthResult is the result of one health check.
type HealthResult struct {
	Name   string       `json:"name"`
	Status HealthStatus `json:"status" jsonschema:"enum=ok,enum=warning,enum=critical,enum=unknown"`
	// Tries is the number of tries.
	Tries    int           `json:"tries" jsonschema_description:"Number of tries"`
	Output   string        `json:"output,omitempty" jsonschema_description:"Output, bounded; absent for a sensitive resource"`
	Duration time.Duration `json:"duration" jsonschema_description:"Nanoseconds, over all tries"`
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

// HealthReport reports that the status of a health check changed
// (io.muster.v1.health).
type HealthReport struct {
	Protocol string       `json:"protocol"`
	Node     string       `json:"node"`
	Manifest string       `json:"manifest" jsonschema_description:"The manifest's key in the bucket"`
	Resource Ref          `json:"resource"`
	Check    string       `json:"check" jsonschema_description:"Name of the check"`
	Status   HealthStatus `json:"status" jsonschema:"enum=ok,enum=warning,enum=critical,enum=unknown"`
	// Was is the previous status, empty for the first one since the agent's start.
	Was    HealthStatus `json:"was,omitempty" jsonschema:"enum=ok,enum=warning,enum=critical,enum=unknown" jsonschema_description:"Previous status; absent for the first one since the agent started"`
	Output string       `json:"output,omitempty"`
	At     time.Time    `json:"at"`
	RunID  string       `json:"run_id,omitempty"`
}
