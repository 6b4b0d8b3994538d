package model

import "time"

// AgentStatus is what an agent answers on its machine (io.muster.v1.agent). Each part of
// the agent fills its own fields.
type AgentStatus struct {
	Protocol string    `json:"protocol"`
	Node     string    `json:"node"`
	Groups   []string  `json:"groups"`
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	StateDir string    `json:"state_dir"`
	Started  time.Time `json:"started"`
	At       time.Time `json:"at" jsonschema_description:"Time of the answer"`
	// Stopping is zero while the agent does not shut down.
	Stopping time.Time `json:"stopping,omitzero" jsonschema_description:"Since when the agent shuts down"`
	NATS     Connected `json:"nats"`
	// Running are the runs in progress, requests included.
	Running []RunningRun `json:"running" jsonschema_description:"Runs in progress, requests included"`
	// Manifests are all that are assigned, in the order of their keys.
	Manifests []AssignedManifest `json:"manifests" jsonschema_description:"What is assigned, by key"`
	Health    HealthCounts       `json:"health" jsonschema_description:"Current health checks, by status"`
	Outbox    int                `json:"outbox" jsonschema_description:"Reports waiting to be published"`
	Watches   int                `json:"watches" jsonschema_description:"Resources that are watched for drift"`
	Polled    int                `json:"polled,omitempty" jsonschema_description:"Resources that are polled, because they cannot be watched"`
	Flapping  []FlappingState    `json:"flapping,omitempty" jsonschema_description:"Resources that something else changes again and again, the first ones"`
	Paused    *Paused            `json:"paused,omitempty" jsonschema_description:"The pause that holds: the node observes and changes nothing; missing for none"`
	Clock     ClockOffset        `json:"clock,omitzero" jsonschema_description:"How the node's clock differs from the server's; missing while that is not measured"`
	// Notices are what is wrong with the node: a rejected configuration, another agent
	// with its id, a bucket that cannot be read.
	Notices  []string `json:"notices" jsonschema_description:"What is wrong with the node: a rejected configuration, another agent with its id, a bucket that cannot be read"`
	LogLevel string   `json:"log_level"`
}

// Connected is the connection to NATS.
type Connected struct {
	Connected bool   `json:"connected"`
	Server    string `json:"server,omitempty" jsonschema_description:"URL of the server, or of those that are tried"`
	// Since is when it was connected or lost; zero means that it never was connected.
	Since   time.Time `json:"since,omitzero" jsonschema_description:"When it was connected, or lost"`
	Error   string    `json:"error,omitempty" jsonschema_description:"Last error"`
	ErrorAt time.Time `json:"error_at,omitzero"`
}

// RunningRun is a run in progress.
type RunningRun struct {
	RunID    string    `json:"run_id"`
	Manifest string    `json:"manifest" jsonschema_description:"Key of the manifest, or ensure for a request"`
	Cause    Cause     `json:"cause"`
	Part     []Ref     `json:"part,omitempty" jsonschema_description:"Resources that it is about; all of the manifest where there are none"`
	Started  time.Time `json:"started" jsonschema_description:"When it began, or began to wait"`
	// WaitsFor is empty for one that does not wait.
	WaitsFor string `json:"waits_for,omitempty" jsonschema_description:"The run that it waits for: they share a path, or packages or services"`
}

// AssignedManifest is one key that is assigned to the node.
type AssignedManifest struct {
	Key   string        `json:"key"`
	State ManifestState `json:"state"`
	// Last is its last run, nil where the agent has made none since its start.
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
	// Deviations are the first resources that are not in their desired state, More how
	// many others are not.
	Deviations []Deviation `json:"deviations,omitempty" jsonschema_description:"The first resources that are not in their desired state"`
	More       int         `json:"more,omitempty" jsonschema_description:"How many further ones are not"`
	// Repair is the last repair of drift since the start of the agent, also after this run;
	// Deviations have what came of it. It is nil where there was none.
	Repair *LastRepair `json:"repair,omitempty" jsonschema_description:"The last repair of drift, also after this run"`
}

// LastRepair is the last repair of drift of a manifest.
type LastRepair struct {
	Resource string    `json:"resource"`
	Outcome  Outcome   `json:"outcome"`
	At       time.Time `json:"at"`
	// Latency is zero for one that failed.
	Latency Duration `json:"latency,omitempty" jsonschema_description:"From the time at which the drift was noticed"`
}

// Deviation is a resource that is not in its desired state.
type Deviation struct {
	Resource string  `json:"resource"`
	Outcome  Outcome `json:"outcome"`
	Reason   string  `json:"reason,omitempty"`
}
