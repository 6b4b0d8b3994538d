package model

import "time"

// AgentStatus is the answer of an agent on its local socket (io.muster.v1.agent). Each part of the agent
// fills its own fields.
type AgentStatus struct {
	Protocol string    `json:"protocol"`
	Node     string    `json:"node"`
	Groups   []string  `json:"groups"`
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	StateDir string    `json:"state_dir"`
	Started  time.Time `json:"started"`
	At       time.Time `json:"at" jsonschema_description:"Time of the answer"`
	// Stopping is the start time of the shutdown, zero before.
	Stopping time.Time `json:"stopping,omitzero" jsonschema_description:"Start time of the shutdown"`
	NATS     Connected `json:"nats"`
	// Running are the runs in progress, requests included.
	Running []RunningRun `json:"running" jsonschema_description:"Runs in progress, requests included"`
	// Manifests are the assigned manifests, by key.
	Manifests []AssignedManifest `json:"manifests" jsonschema_description:"Assigned manifests, by key"`
	Health    HealthCounts       `json:"health" jsonschema_description:"Current health checks, by status"`
	Outbox    int                `json:"outbox" jsonschema_description:"Reports waiting to be published"`
	Watches   int                `json:"watches" jsonschema_description:"Resources that are watched for drift"`
	Polled    int                `json:"polled,omitempty" jsonschema_description:"Resources that are polled, because they cannot be watched"`
	Flapping  []FlappingState    `json:"flapping,omitempty" jsonschema_description:"Resources that another program changes repeatedly (the first ones)"`
	Paused    *Paused            `json:"paused,omitempty" jsonschema_description:"The active pause: the node observes and changes nothing; absent for none"`
	Clock     ClockOffset        `json:"clock,omitzero" jsonschema_description:"Difference between the clocks of the node and the server; absent until it is measured"`
	// Notices are the problems of the node: a rejected configuration, another agent with the same id, an
	// unreadable bucket.
	Notices  []string `json:"notices" jsonschema_description:"Problems of the node: a rejected configuration, another agent with the same id, an unreadable bucket"`
	LogLevel string   `json:"log_level"`
}

// Connected is the connection to NATS.
type Connected struct {
	Connected bool   `json:"connected"`
	Server    string `json:"server,omitempty" jsonschema_description:"URL of the server, or URLs of the servers that the agent tries"`
	// Since is when the connection was made or lost, zero before the first connection.
	Since   time.Time `json:"since,omitzero" jsonschema_description:"When the connection was made or lost"`
	Error   string    `json:"error,omitempty" jsonschema_description:"Last error"`
	ErrorAt time.Time `json:"error_at,omitzero"`
}

// RunningRun is a run in progress.
type RunningRun struct {
	RunID    string    `json:"run_id"`
	Manifest string    `json:"manifest" jsonschema_description:"Key of the manifest, or ensure for a request"`
	Cause    Cause     `json:"cause"`
	Part     []Ref     `json:"part,omitempty" jsonschema_description:"Resources of a partial run; empty for the complete manifest"`
	Started  time.Time `json:"started" jsonschema_description:"When the run started, or started to wait"`
	// WaitsFor is empty if the run does not wait.
	WaitsFor string `json:"waits_for,omitempty" jsonschema_description:"The run that it waits for, because both use the same path, packages or services"`
}

// AssignedManifest is a key that is assigned to the node.
type AssignedManifest struct {
	Key   string        `json:"key"`
	State ManifestState `json:"state"`
	// Last is the last run since the start of the agent, nil if there is none.
	Last *LastRun `json:"last,omitempty" jsonschema_description:"Last run since the start of the agent"`
}

// LastRun is the last run of a manifest.
type LastRun struct {
	RunID    string    `json:"run_id"`
	Revision uint64    `json:"revision,omitempty"`
	Cause    Cause     `json:"cause"`
	Outcome  Outcome   `json:"outcome"`
	Started  time.Time `json:"started"`
	Duration Duration  `json:"duration"`
	Counts   Counts    `json:"counts"`
	Errors   []string  `json:"errors,omitempty"`
	// Deviations are the first resources that are not in their desired state. More is the number of others.
	Deviations []Deviation `json:"deviations,omitempty" jsonschema_description:"The first resources that are not in their desired state"`
	More       int         `json:"more,omitempty" jsonschema_description:"Number of further resources"`
	// Repair is the last repair of drift since the start of the agent, nil if there is none. It may be later
	// than this run.
	Repair *LastRepair `json:"repair,omitempty" jsonschema_description:"Last repair of drift; may be later than this run"`
}

// LastRepair is the last repair of drift of a manifest.
type LastRepair struct {
	Resource string    `json:"resource"`
	Outcome  Outcome   `json:"outcome"`
	At       time.Time `json:"at"`
	// Latency is zero for a failed repair.
	Latency Duration `json:"latency,omitempty" jsonschema_description:"Time from the detection of the drift to the repair"`
}

// Deviation is a resource that is not in its desired state.
type Deviation struct {
	Resource string  `json:"resource"`
	Outcome  Outcome `json:"outcome"`
	Reason   string  `json:"reason,omitempty"`
}
