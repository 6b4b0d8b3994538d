package kvstore

import (
	"time"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/model"
)

// Limits that the server enforces.
const (
	// MaxCommandTTL is how long a command waits for a node at most, and how long a
	// node remembers which commands it has executed.
	MaxCommandTTL = 24 * time.Hour
	// MaxRegistrationAge is how long the server stores a registration at most, unless its TTL never ends.
	MaxRegistrationAge = 366 * 24 * time.Hour

	// DefaultReportMax is how large a report is at most, headers included, unless the
	// stream of reports has another bound.
	DefaultReportMax = 64 << 10
	// DefaultStateMax is how large the state of a node is at most, and its facts,
	// unless the bucket of nodes has another bound.
	DefaultStateMax = 512 << 10

	// maxRegistration is how large a registration is at most: its annotations have
	// half of it.
	maxRegistration = 32 << 10

	// maxControl is how large a control document is at most, with its signatures and headers.
	maxControl = 64 << 10

	// HistorySize is how many revisions of a key the buckets of assignments, data and control
	// documents keep.
	HistorySize = 16

	// reportWindow is how long the stream of reports knows the ids of messages: a report
	// that is published again meanwhile, because its acknowledgement was lost or the agent
	// was killed, or the server was away for a minute, is stored once. The server keeps
	// the ids in memory, those of a node that floods included.
	reportWindow = 2 * time.Minute
	// shortestWindow is the least that the server has: what is published again to any other
	// stream replaces the message of its subject.
	shortestWindow = 100 * time.Millisecond
)

// Placeholders in the subjects of a Stream.
const (
	// AnyNode is replaced by the id of a node.
	AnyNode = "<node>"
	// AnyFamily is replaced by each family of a node.
	AnyFamily = "<family>"
)

// Stream describes a bucket or stream of a fleet: its configuration, and what a
// node does with it. Provisioning, checks and the permissions of nodes are
// derived from it.
type Stream struct {
	// Config leaves sizes and replicas at zero where an operator chooses them.
	Config api.StreamConfig
	// Optional reports whether a fleet works without it.
	Optional bool
	// Writes are the subjects a node publishes on.
	Writes []string
	// Reads are the subjects whose newest message a node gets directly.
	Reads []string
	// ReadsAll reports whether a node may get every message, by sequence.
	ReadsAll bool
	// Lists reports whether a node may list the subjects of all its messages. It cannot
	// be kept to its own; no message is shown.
	Lists bool
}

// Streams returns every bucket and stream of the fleet, in the order of their
// creation.
func (n Names) Streams() []Stream {
	manifests := bucketConfig(n.Manifests(), "Manifests assigned to nodes and groups", HistorySize)
	manifests.RePublish = &api.RePublish{Source: KVSubject(n.Manifests(), ">"), Destination: n.Changed(">"), HeadersOnly: true}
	manifests.Metadata[FormatKey] = secondFormat
	// With a rollup of one key an operator of one group could remove all others.
	manifests.RollupAllowed = false

	control := bucketConfig(n.Control(), "What operators write about nodes: pause, labels", HistorySize)
	control.RePublish = &api.RePublish{Source: KVSubject(n.Control(), "*.*.*"), Destination: n.ControlChanged("{{wildcard(1)}}.{{wildcard(2)}}", "{{wildcard(3)}}"), HeadersOnly: true}
	control.RollupAllowed, control.MaxMsgSize = false, maxControl

	nodes := bucketConfig(n.Nodes(), "Status and facts of nodes", 1)
	nodes.AllowMsgTTL = true
	// With a rollup of its own key a node could remove the keys of all others.
	nodes.RollupAllowed = false

	bundles := streamConfig(ObjectStream(n.Bundles()), "Bundles: manifests with their files", "$O."+n.Bundles()+".C.>", "$O."+n.Bundles()+".M.>")
	bundles.Discard, bundles.RollupAllowed = api.DiscardNew, true

	reports := streamConfig(n.Reports(), "Reports of nodes, as CloudEvents", n.ReportSubjects("*")...)
	reports.DenyDelete, reports.Compression, reports.Duplicates = true, api.S2Compression, reportWindow

	commands := streamConfig(n.Commands(), "Requests queued for nodes that are away", n.Command("*.*", "*"))
	commands.RePublish = &api.RePublish{Source: n.prefix + ".command.>", Destination: n.Changed("command.>"), HeadersOnly: true}
	commands.Metadata[FormatKey] = secondFormat
	commands.Discard = api.DiscardNew
	commands.MaxAge, commands.AllowMsgTTL = MaxCommandTTL, true

	registrations := streamConfig(n.Registrations(), "Services registered by nodes", n.Registration("*", "*", "*", "*", "*", "*"))
	registrations.MaxMsgSize = maxRegistration
	registrations.MaxMsgsPer, registrations.MaxAge, registrations.AllowMsgTTL = 1, MaxRegistrationAge, true

	return []Stream{
		{Config: manifests, Reads: []string{KVSubject(n.Manifests(), model.Key(AnyFamily, ">"))}, Lists: true},
		{Config: bucketConfig(n.Data(), "Hierarchical data of manifests", HistorySize), Reads: []string{KVSubject(n.Data(), ">")}},
		{Config: nodes, Writes: []string{n.NodeState(AnyNode), n.NodeFacts(AnyNode), n.NodeInventory(AnyNode)}, Reads: []string{n.NodeState(AnyNode)}},
		// The parts of a bundle can only be asked for by sequence.
		{Config: bundles, Reads: []string{"$O." + n.Bundles() + ".M.>"}, ReadsAll: true},
		{Config: reports, Writes: []string{n.Report(AnyNode, "*", "*")}},
		{Config: commands, Reads: []string{n.Command(AnyFamily, ">")}, Lists: true},
		{Config: registrations, Optional: true, Writes: []string{n.Registration("*", "*", "*", AnyNode, "*", "*")}, ReadsAll: true},
		{Config: control, Optional: true, Reads: []string{KVSubject(n.Control(), model.Key(AnyFamily, ">"))}, Lists: true},
	}
}

// streamConfig is a stream on file without limits.
func streamConfig(name, description string, subjects ...string) api.StreamConfig {
	return api.StreamConfig{
		Name:         name,
		Description:  description,
		Subjects:     subjects,
		Retention:    api.LimitsPolicy,
		Storage:      api.FileStorage,
		Discard:      api.DiscardOld,
		MaxMsgs:      -1,
		MaxMsgsPer:   -1,
		MaxMsgSize:   -1,
		MaxConsumers: -1,
		Duplicates:   shortestWindow,
		AllowDirect:  true,
		Metadata:     map[string]string{FormatKey: firstFormat},
	}
}

// bucketConfig is a key-value bucket as every client of NATS expects it.
func bucketConfig(bucket, description string, history int64) api.StreamConfig {
	cfg := streamConfig(KVStream(bucket), description, KVSubject(bucket, ">"))
	cfg.MaxMsgsPer = history
	cfg.Discard = api.DiscardNew
	cfg.RollupAllowed, cfg.DenyDelete = true, true

	return cfg
}
