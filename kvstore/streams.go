package kvstore

import (
	"time"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/model"
)

// Limits that the server enforces.
const (
	// MaxCommandTTL limits how long a command waits for a node, and how long a node remembers executed
	// commands.
	MaxCommandTTL = 24 * time.Hour
	// MaxRegistrationAge limits how long the server stores a registration, unless its TTL is "never".
	MaxRegistrationAge = 366 * 24 * time.Hour

	// DefaultReportMax is the default size limit of a report in bytes, including headers.
	DefaultReportMax = 64 << 10
	// DefaultStateMax is the default size limit of a state, and of facts, in bytes.
	DefaultStateMax = 512 << 10

	// maxRegistration limits a registration in bytes. Annotations may use half of it.
	maxRegistration = 32 << 10

	// maxControl limits a control document in bytes, including signatures and headers.
	maxControl = 64 << 10

	// HistorySize is the number of revisions per key in the buckets of assignments, data and control
	// documents.
	HistorySize = 16

	// reportWindow is how long the stream of reports remembers message ids. A report may be published
	// twice after a lost acknowledgement, a killed agent or an outage of a minute, and is stored once.
	// The server keeps the ids in memory, even those of a flooding node.
	reportWindow = 2 * time.Minute
	// shortestWindow is the shortest time that the server supports. In all other streams, a repeated
	// message replaces the first one.
	shortestWindow = 100 * time.Millisecond
)

// Placeholders in the subjects of a Stream.
const (
	// AnyNode stands for the id of a node.
	AnyNode = "<node>"
	// AnyFamily stands for each family of a node.
	AnyFamily = "<family>"
)

// Stream describes a bucket or stream of a fleet: its configuration, and what a node may do with it.
// Provisioning, checks and permissions derive from it.
type Stream struct {
	// Config has zero sizes and replicas where an operator chooses them.
	Config api.StreamConfig
	// Optional reports whether a fleet works without the stream.
	Optional bool
	// Writes are the subjects on which a node publishes.
	Writes []string
	// Reads are the subjects whose newest message a node may read by direct get.
	Reads []string
	// ReadsAll reports whether a node may read every message by sequence.
	ReadsAll bool
	// Lists reports whether a node may list all subjects of the stream. NATS cannot restrict the list
	// to the node's own subjects. It shows no message.
	Lists bool
}

// Streams returns every bucket and stream of the fleet in the order of their creation.
func (n Names) Streams() []Stream {
	manifests := bucketConfig(n.Manifests(), "Manifests assigned to nodes and groups", HistorySize)
	manifests.RePublish = &api.RePublish{Source: KVSubject(n.Manifests(), ">"), Destination: n.Changed(">"), HeadersOnly: true}
	manifests.Metadata[FormatKey] = secondFormat
	// A rollup of one key would let an operator of one group remove all others.
	manifests.RollupAllowed = false

	control := bucketConfig(n.Control(), "What operators write about nodes: pause, labels", HistorySize)
	control.RePublish = &api.RePublish{Source: KVSubject(n.Control(), "*.*.*"), Destination: n.ControlChanged("{{wildcard(1)}}.{{wildcard(2)}}", "{{wildcard(3)}}"), HeadersOnly: true}
	control.RollupAllowed, control.MaxMsgSize = false, maxControl

	nodes := bucketConfig(n.Nodes(), "Status and facts of nodes", 1)
	nodes.AllowMsgTTL = true
	// A rollup of its own key would let a node remove the keys of all others.
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
		// The chunks of a bundle can be requested only by sequence.
		{Config: bundles, Reads: []string{"$O." + n.Bundles() + ".M.>"}, ReadsAll: true},
		{Config: reports, Writes: []string{n.Report(AnyNode, "*", "*")}},
		{Config: commands, Reads: []string{n.Command(AnyFamily, ">")}, Lists: true},
		{Config: registrations, Optional: true, Writes: []string{n.Registration("*", "*", "*", AnyNode, "*", "*")}, ReadsAll: true},
		{Config: control, Optional: true, Reads: []string{KVSubject(n.Control(), model.Key(AnyFamily, ">"))}, Lists: true},
	}
}

// streamConfig returns the configuration of a file stream without limits.
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

// bucketConfig returns the configuration of a key-value bucket that NATS clients understand.
func bucketConfig(bucket, description string, history int64) api.StreamConfig {
	cfg := streamConfig(KVStream(bucket), description, KVSubject(bucket, ">"))
	cfg.MaxMsgsPer = history
	cfg.Discard = api.DiscardNew
	cfg.RollupAllowed, cfg.DenyDelete = true, true

	return cfg
}
