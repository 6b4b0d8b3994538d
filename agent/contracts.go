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
	// Run keeps the entries current until ctx ends. It calls wake after possible changes of the entries or
	// their Sync, with the keys if it knows them. last is the memory of an earlier process. wake does not
	// block. After an error, Run is called again after a delay.
	Run(ctx context.Context, last model.Memory, wake func(keys []string)) error
	// Entries returns the known entries by key, without values.
	Entries() (map[string]model.Entry, model.Sync)
	// SetGroups sets the groups of the node. Sync is incomplete until their keys are read.
	SetGroups(groups []string)
}

// Watched is a bucket with documents about the node.
type Watched interface {
	desired.DocumentSource
	// Run and SetGroups work like the methods of Assignments.
	Run(ctx context.Context, last model.Memory, wake func(keys []string)) error
	SetGroups(groups []string)
}

// Publisher stores reports in the stream.
type Publisher interface {
	reporting.Publisher
	// MaxMessage returns the server's message limit in bytes, zero until it is known.
	MaxMessage() int64
}

// Section is a part of the agent that fills its fields of the status. Any goroutine may call it. It does not
// wait for the agent's work.
type Section interface {
	Describe(out *model.AgentStatus)
}

// Loader creates resources from documents. *manifest.Loader implements it.
type Loader interface {
	desired.Loader
	requests.Loader
	// Origin returns the data about the assignment that resources of a manifest may request. It is called
	// with nil for the manifest of an ensure request.
	Origin(*manifest.Resolved) resource.Origin
}
