package provision

import (
	"cmp"
	"time"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
)

// Provisioner creates the buckets and streams of a fleet, and checks them.
type Provisioner struct{ store *kvstore.Store }

// New makes it of a store.
func New(s *kvstore.Store) Provisioner { return Provisioner{s} }

// The sizes of what is provisioned, where Options leaves them open.
const (
	// HistorySize is how many revisions of an assignment are kept.
	HistorySize = 16

	defaultReportAge   = 7 * 24 * time.Hour
	defaultReportBytes = 1 << 30
	duplicateWindow    = 2 * time.Minute
)

// Options are the sizes of what Plan and Apply provision. Zero values mean: the
// default for what is new, and what is there already for the rest.
type Options struct {
	// Replicas of every bucket and stream; the default is 1.
	Replicas int
	// ReportAge and ReportBytes bound the stream of reports: 7 days, 1 GiB.
	ReportAge   time.Duration
	ReportBytes int64
	// BundleBytes bounds the store of bundles; the default is no bound.
	BundleBytes int64
	// OnlyRegistrations leaves out all but the stream of registrations.
	OnlyRegistrations bool
}

// withDefaults fills in what new buckets and streams get.
func (o Options) withDefaults() Options {
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.ReportAge = cmp.Or(o.ReportAge, defaultReportAge)
	o.ReportBytes = cmp.Or(o.ReportBytes, defaultReportBytes)

	return o
}

// desired is the configuration of everything, in the order of its creation. A
// size that options leave open is zero in it.
func desired(n kvstore.Names, o Options) []api.StreamConfig {
	manifests := bucketConfig(n.Manifests(), "Manifests assigned to nodes and groups", HistorySize)
	manifests.RePublish = &api.RePublish{Source: kvstore.KVSubject(n.Manifests(), ">"), Destination: n.Changed(">"), HeadersOnly: true}
	manifests.AllowAtomicPublish = true

	nodes := bucketConfig(n.Nodes(), "What nodes say of themselves", 1)
	nodes.AllowMsgTTL = true
	// With a rollup of its own key a node could remove what all others said.
	nodes.RollupAllowed = false

	reports := streamConfig(n.Reports(), "Reports of nodes, as CloudEvents", n.Report("*", "*", "*"))
	reports.MaxAge, reports.MaxBytes = o.ReportAge, o.ReportBytes
	reports.DenyDelete = true

	commands := streamConfig(n.Commands(), "Requests that wait for a node that is away", n.Command("*.*"))
	commands.MaxAge = kvstore.MaxCommandTTL
	commands.AllowMsgTTL = true

	registrations := streamConfig(n.Registrations(), "Services that nodes tell of", n.Registration("*", "*", "*", "*", "*", "*"))
	registrations.MaxMsgsPer, registrations.MaxAge = 1, kvstore.MaxRegistrationTTL
	registrations.AllowMsgTTL = true

	all := []api.StreamConfig{
		manifests,
		bucketConfig(n.Data(), "Hierarchical data of manifests", HistorySize),
		nodes,
		bundlesConfig(n.Bundles(), o.BundleBytes),
		reports,
		commands,
		registrations,
	}
	for i := range all {
		all[i].Replicas = o.Replicas
	}
	if o.OnlyRegistrations {
		return all[len(all)-1:]
	}

	return all
}

// streamConfig is a stream on file that keeps everything.
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
		Duplicates:   duplicateWindow,
		AllowDirect:  true,
	}
}

// bucketConfig is a key-value bucket as every client of NATS expects it.
func bucketConfig(bucket, description string, history int64) api.StreamConfig {
	cfg := streamConfig(kvstore.KVStream(bucket), description, kvstore.KVSubject(bucket, ">"))
	cfg.MaxMsgsPer = history
	cfg.Discard = api.DiscardNew
	cfg.RollupAllowed, cfg.DenyDelete = true, true

	return cfg
}

// bundlesConfig is an object store as every client of NATS expects it.
func bundlesConfig(bucket string, maxBytes int64) api.StreamConfig {
	cfg := streamConfig(kvstore.ObjectStream(bucket), "Bundles: manifests with their files", "$O."+bucket+".C.>", "$O."+bucket+".M.>")
	cfg.MaxBytes = maxBytes
	cfg.Discard = api.DiscardNew
	cfg.RollupAllowed = true

	return cfg
}
