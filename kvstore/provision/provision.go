// Package provision creates, updates and checks the buckets and streams of a fleet, which
// kvstore.Names.Streams describes. It also prints the permissions and accounts of its users.
package provision

import (
	"cmp"
	"context"
	"time"

	"github.com/musterfleet/muster/kvstore"
)

// Defaults for new streams.
const (
	defaultReportAge      = 7 * 24 * time.Hour
	defaultReportBytes    = 1 << 30
	defaultReportCount    = 240
	mostRegistrationBytes = 256 << 20
	mostControlBytes      = 128 << 20
)

// Options are the sizes that an operator chooses. Zero means the default for a new stream, and no
// change for an existing one.
type Options struct {
	// Replicas is the number of replicas of every bucket and stream. The default is 1.
	Replicas int
	// ReportAge and ReportBytes limit the stream of reports. The defaults are 7 days and 1 GiB.
	ReportAge   time.Duration
	ReportBytes int64
	// ReportCount and ReportMax limit the reports of one node: the number of messages per kind and
	// outcome, and the size of one. The defaults are 240 and 64 KiB. They also apply to an existing
	// stream without a limit.
	ReportCount, ReportMax int64
	// StateMax limits the state of a node, and its facts. The default is 512 KiB, also for an existing
	// bucket without a limit.
	StateMax int64
	// RegistrationBytes limits the stream of registrations, because every reader reads all of it. The
	// default is a quarter of ReportBytes, but at most 256 MiB, also for an existing stream without a
	// limit.
	RegistrationBytes int64
	// ManifestBytes and CommandBytes limit the bucket of assignments and the stream of queued
	// requests, so that a user who fills one leaves room for the others. The default is no limit.
	ManifestBytes, CommandBytes int64
	// ControlBytes limits the bucket of control documents, which are small. The default is a quarter
	// of ReportBytes, but at most 128 MiB. It also applies to an existing bucket without a limit that
	// holds no more than that.
	ControlBytes int64
	// BundleBytes limits the store of bundles. The default is no limit.
	BundleBytes int64
	// OnlyRegistrations selects only the stream of registrations.
	OnlyRegistrations bool
}

func (o Options) withDefaults() Options {
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.ReportAge = cmp.Or(o.ReportAge, defaultReportAge)
	o.ReportBytes = cmp.Or(o.ReportBytes, defaultReportBytes)
	o.ReportCount = cmp.Or(o.ReportCount, defaultReportCount)
	o.ReportMax = cmp.Or(o.ReportMax, kvstore.DefaultReportMax)
	o.RegistrationBytes = cmp.Or(o.RegistrationBytes, min(o.ReportBytes/4, mostRegistrationBytes))
	o.ControlBytes = cmp.Or(o.ControlBytes, min(o.ReportBytes/4, mostControlBytes))
	o.StateMax = cmp.Or(o.StateMax, kvstore.DefaultStateMax)

	return o
}

// desired returns the buckets and streams with the chosen sizes, in the order of their creation.
func desired(n kvstore.Names, o Options) []kvstore.Stream {
	var all []kvstore.Stream
	for _, s := range n.Streams() {
		s.Config.Replicas = o.Replicas
		switch s.Config.Name {
		case n.Reports():
			s.Config.MaxAge, s.Config.MaxBytes = o.ReportAge, o.ReportBytes
			s.Config.MaxMsgsPer, s.Config.MaxMsgSize = o.ReportCount, int32(o.ReportMax)
		case n.Registrations():
			s.Config.MaxBytes = o.RegistrationBytes
		case kvstore.KVStream(n.Nodes()):
			s.Config.MaxMsgSize = int32(o.StateMax)
		case kvstore.KVStream(n.Manifests()):
			s.Config.MaxBytes = o.ManifestBytes
		case kvstore.KVStream(n.Control()):
			s.Config.MaxBytes = o.ControlBytes
		case n.Commands():
			s.Config.MaxBytes = o.CommandBytes
		case kvstore.ObjectStream(n.Bundles()):
			s.Config.MaxBytes = o.BundleBytes
		}
		if !o.OnlyRegistrations || s.Config.Name == n.Registrations() {
			all = append(all, s)
		}
	}

	return all
}

// Provisioner provisions a fleet.
type Provisioner struct{ store *kvstore.Store }

// New returns a Provisioner for the fleet of s.
func New(s *kvstore.Store) Provisioner { return Provisioner{s} }

// Share returns the size limits of the stream of reports in bytes: for one node, and for all nodes.
// Zero or less means no limit.
func (p Provisioner) Share(ctx context.Context) (node, all int64, err error) {
	found, err := p.store.Infos(ctx, "")
	if err != nil {
		return 0, 0, err
	}
	info, err := found.Of(p.store.Names().Reports())
	if err != nil {
		return 0, 0, err
	}
	c := info.Config

	return int64(len(c.Subjects)) * max(c.MaxMsgsPer, 0) * int64(max(c.MaxMsgSize, 0)), c.MaxBytes, nil
}
