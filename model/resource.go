// Package model holds the words of muster: resources, transactions, runs,
// assignments, reports and the documents they travel in. It is data only; it
// imports no other package of this module.
package model

import (
	"context"
	"fmt"
	"strings"
	"time"
)

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

	HealthChecks       []HealthCheck   `json:"health_checks,omitempty" jsonschema_description:"Checks to run once it is in its desired state; a critical one fails it"`
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

// Ref names one resource of a manifest: type#name, or type#alias.
type Ref struct {
	Type string
	Name string
}

// String returns the ref as it is written in manifests and logs, type#name.
func (r Ref) String() string { return r.Type + "#" + r.Name }

// ParseRef reads type#name. The name is everything after the first #. The
// error wraps ErrInvalidRef.
func ParseRef(s string) (Ref, error) {
	typ, name, found := strings.Cut(s, "#")
	if !found || typ == "" || name == "" {
		return Ref{}, fmt.Errorf("%w: %q, write it as type#name, for example file#/etc/motd", ErrInvalidRef, s)
	}

	return Ref{Type: typ, Name: name}, nil
}

// MarshalText makes a ref a string in JSON and YAML.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is the inverse of MarshalText; see ParseRef for its error.
func (r *Ref) UnmarshalText(b []byte) error {
	parsed, err := ParseRef(string(b))
	if err != nil {
		return err
	}
	*r = parsed

	return nil
}

type refKey struct{}

// WithRef returns a context for log records about a resource. Logs with fields add the resource.
func WithRef(ctx context.Context, ref Ref) context.Context {
	return context.WithValue(ctx, refKey{}, ref)
}

// RefOf returns the resource of a context, and whether it has one.
func RefOf(ctx context.Context) (ref Ref, ok bool) {
	ref, ok = ctx.Value(refKey{}).(Ref)

	return ref, ok
}

// RegisterEntry is an entry of the property register_when_stable: a service that is registered while the
// resource is in its desired state.
type RegisterEntry struct {
	Cluster     string            `json:"cluster" jsonschema_description:"Cluster that the service belongs to: letters, digits, - and _"`
	Service     string            `json:"service" jsonschema_description:"Name of the service: letters, digits, - and _"`
	Protocol    string            `json:"protocol" jsonschema_description:"Protocol of the service: http, https, mysql"`
	Address     string            `json:"address" jsonschema_description:"IP address or host name"`
	Port        *int              `json:"port,omitempty" jsonschema:"minimum=1,maximum=65535" jsonschema_description:"Port of the service; a service without a port is not a target of Prometheus"`
	Priority    *int              `json:"priority,omitempty" jsonschema:"default=1" jsonschema_description:"1 to 255; lower first"`
	TTL         *TTL              `json:"ttl,omitempty" jsonschema:"default=1m" jsonschema_description:"Time to live unless renewed, at least 3s; never keeps it until it is withdrawn"`
	Annotations map[string]string `json:"annotations,omitempty" jsonschema_description:"Annotations (key/value metadata)"`
}

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
	Name     string        `json:"name"`
	Status   HealthStatus  `json:"status" jsonschema:"enum=ok,enum=warning,enum=critical,enum=unknown"`
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
	Was      HealthStatus `json:"was,omitempty" jsonschema:"enum=ok,enum=warning,enum=critical,enum=unknown" jsonschema_description:"Previous status; absent for the first one since the agent started"`
	Output   string       `json:"output,omitempty"`
	At       time.Time    `json:"at"`
	RunID    string       `json:"run_id,omitempty"`
}

// Flapping defines when a resource flaps: it was repaired more than Repairs times within the time Within. If
// Repairs is 0, no resource flaps.
type Flapping struct {
	Repairs int      `json:"repairs" jsonschema:"minimum=1" jsonschema_description:"Number of repairs that is still tolerated"`
	Within  Duration `json:"within" jsonschema_description:"Time in which repairs are counted"`
}

// DefaultFlapping applies if a manifest sets nothing else.
var DefaultFlapping = Flapping{Repairs: 5, Within: Duration(time.Minute)}

// MaxFlapping limits the number of flapping resources in the state of a node, for writers and readers.
const MaxFlapping = 20

// FlappingState is a resource of a node that flaps.
type FlappingState struct {
	Manifest string    `json:"manifest" jsonschema_description:"Key in the bucket"`
	Resource Ref       `json:"resource"`
	Since    time.Time `json:"since"`
	Writer   string    `json:"writer,omitempty" jsonschema_description:"Program that was seen writing; a hint, because users choose the names of their processes"`
	Unit     string    `json:"unit,omitempty" jsonschema_description:"Unit of a service that stopped; see its journal"`
}

// By describes in a few words what changes the resource.
func (f FlappingState) By() string {
	switch {
	case f.Writer != "":
		return "probably written by " + f.Writer
	case f.Unit != "":
		return "stopped by a program, or exits: see journalctl --unit=" + f.Unit
	default:
		return "written by an unknown program"
	}
}
