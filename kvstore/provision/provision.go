// Package provision creates the buckets and streams of a fleet, brings them up to
// date and checks them, as kvstore.Names.Streams describes them.
package provision

import (
	"cmp"
	"time"

	"github.com/musterfleet/muster/kvstore"
)

// The bounds of a new stream of reports, where Options leave them open.
const (
	defaultReportAge   = 7 * 24 * time.Hour
	defaultReportBytes = 1 << 30
)

// Options are the sizes an operator chooses. Zero values mean the default for
// what is new, and no change for the rest.
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

func (o Options) withDefaults() Options {
	o.Replicas = cmp.Or(o.Replicas, 1)
	o.ReportAge = cmp.Or(o.ReportAge, defaultReportAge)
	o.ReportBytes = cmp.Or(o.ReportBytes, defaultReportBytes)

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
