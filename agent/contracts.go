package agent

import (
	"context"

	"github.com/musterfleet/muster/agent/config"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Config is the configuration of an agent.
type Config = config.Config

// Assignments are the keys of the bucket that are assigned to the node.
type Assignments interface {
	desired.ValueSource
	// Run keeps the entries current until ctx ends, and calls wake whenever they or
	// their Sync may have changed, with the keys if it knows them. last is what an
	// earlier process knew. wake does not block. An error is not the end: Run is
	// called again after a while.
	Run(ctx context.Context, last model.Memory, wake func(keys []string)) error
	// Entries returns the entries as they are known now, by key, without values.
	Entries() (map[string]model.Entry, model.Sync)
	// SetGroups replaces the groups of the node; Sync is not complete before their
	// keys were read.
	SetGroups(groups []string)
}

// Watched is a bucket of what concerns the node: what operators write about it.
type Watched interface {
	desired.DocumentSource
	// Run and SetGroups are those of Assignments.
	Run(ctx context.Context, last model.Memory, wake func(keys []string)) error
	SetGroups(groups []string)
}

// Publisher stores reports in the stream.
type Publisher interface {
	reporting.Publisher
	// MaxMessage returns how many bytes the server takes; zero while it is not known.
	MaxMessage() int64
}

// Section is a part of the agent that fills its fields of the status. It is called by any
// goroutine, and does not wait for what the agent does.
type Section interface {
	Describe(out *model.AgentStatus)
}

// Loader makes resources of documents; *manifest.Loader is one.
type Loader interface {
	desired.Loader
	requests.Loader
	// Origin returns what the resources of a manifest may ask of it when they run; it
	// is called with nil for the manifest of an ensure request.
	Origin(*manifest.Resolved) resource.Origin
}
