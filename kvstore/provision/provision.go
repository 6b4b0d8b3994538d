// Package provision creates the buckets and streams of a fleet, brings them up to
// date and checks them, as kvstore.Names.Streams describes them.
package provision

import (
	"cmp"
	"context"
	"time"

	"github.com/musterfleet/muster/kvstore"
)

// The bounds of new streams, where Options leave them open.
const (
	defaultReportAge      = 7 * 24 * time.Hour
	defaultReportBytes    = 1 << 30
	defaultReportCount    = 240
	mostRegistrationBytes = 256 << 20
	mostControlBytes      = 128 << 20
)

// Options are the sizes an operator chooses. Zero values mean the default for
// what is new, and no change for the rest.
type Options struct {
	// Replicas of every bucket and stream; the default is 1.
	Replicas int
	// ReportAge and ReportBytes bound the stream of reports: 7 days, 1 GiB.
	ReportAge   time.Duration
	ReportBytes int64
	// ReportCount and ReportSize bound what is kept of one node: how many messages of
	// each kind and outcome, and how large one is. The defaults are 240 and 64 KiB,
	// also for a stream without a bound.
	ReportCount, ReportMax int64
	// StateMax bounds the state and the facts of a node, each. The default is 512
	// KiB, also for a bucket without a bound.
	StateMax int64
	// RegistrationBytes bounds the stream of registrations, which every reader reads: a
	// quarter of ReportBytes, 256 MiB at most, also where there was no bound.
	RegistrationBytes int64
	// ManifestBytes and CommandBytes bound the bucket of assignments and the stream of
	// queued requests, so that whoever fills one leaves room for everything else; the
	// default is no bound.
	ManifestBytes, CommandBytes int64
	// ControlBytes bounds the bucket of what operators write about nodes, of which each value is small: a quarter of
	// ReportBytes, 128 MiB at most, also where there was no bound and it holds no more.
	ControlBytes int64
	// BundleBytes bounds the store of bundles; the default is no bound.
	BundleBytes int64
	// OnlyRegistrations leaves out all but the stream of registrations.
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

// desired returns the buckets and streams with the sizes of options, in the order
// of their creation.
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

// Provisioner provisions the fleet of a connection.
type Provisioner struct{ store *kvstore.Store }

// New returns the provisioner of a fleet.
func New(s *kvstore.Store) Provisioner { return Provisioner{s} }

// Share returns how many bytes of reports the stream keeps of one node at most, and
// of all nodes; zero or less is no bound.
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
