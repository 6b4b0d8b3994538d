package agent

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Entry is one assignment as it stands in the bucket.
type Entry struct {
	// Key is node.<node>.<name> or group.<group>.<name>.
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	// Value is a manifest or an assignment document. It is not changed.
	Value []byte `json:"value"`
}

// Sync says how good the entries are.
type Sync struct {
	// Complete says that the entries are all there are: a manifest that is not
	// among them is unassigned. While it is false nothing is unassigned.
	Complete bool
	// Known are the families, group.web, whose entries are all there are although
	// those of others are not.
	Known []string
	// Problem says why they cannot be trusted although the bucket was read: it was
	// made anew, or lost its content. It is reported once.
	Problem string
	// Invalid are keys of the node's families that are none of an assignment.
	Invalid []string
	// Away says why the bucket cannot be read now, or a part of it. That may pass,
	// and is told by the node's state only.
	Away string
}

// knows says that all entries of a family are known.
func (s Sync) knows(family string) bool { return s.Complete || slices.Contains(s.Known, family) }

// Assignments is what the node is told to run.
type Assignments interface {
	// Run keeps the entries current until ctx ends, and calls wake whenever they
	// or their Sync may have changed. wake does not block. An error is not the
	// end: Run is called again after a while.
	Run(ctx context.Context, wake func()) error
	// Entries gives the entries as they are known now.
	Entries() ([]Entry, Sync)
}

// Regrouper is what Assignments may be too: then a reload can change the groups.
type Regrouper interface {
	// Regroup makes the entries those of other groups; Sync is not complete
	// before they were read.
	Regroup(groups []string)
}

// BundleSource gives bundles.
type BundleSource interface {
	// GetBundle opens a bundle by its digest, sha256-<hex>. Every error may pass.
	GetBundle(ctx context.Context, digest string) (io.ReadCloser, error)
}

// Publisher hands reports to the stream.
type Publisher interface {
	// PublishReports stores reports in their order, and gives how many of the first
	// are stored for certain. The error is that of the first that is not, and wraps
	// model.ErrUndeliverable when it never will be. The same report may come again.
	PublishReports(ctx context.Context, reports []model.Report) (stored int, err error)
}

// StateStore keeps what the node says of itself.
type StateStore interface {
	// PutState stores the state; after ttl without another one the node counts as
	// silent.
	PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error
	PutFacts(ctx context.Context, node string, facts model.Facts) error
	// State gives the state that is stored; an agent of the same id stores another.
	State(ctx context.Context, node string) (model.Node, error)
}

// Loader makes resources of documents; *manifest.Loader is one.
type Loader interface {
	Resolve(ctx context.Context, doc *manifest.Document, in manifest.Inputs) (*manifest.Resolved, error)
	Condition(ctx context.Context, name string, v resource.Value, in manifest.Inputs) (bool, error)
	ResolveOne(ctx context.Context, typ string, properties resource.Value, in manifest.Inputs) (*manifest.Resolved, error)
	ResolveQuestion(ctx context.Context, typ string, properties resource.Value, in manifest.Inputs) (*manifest.Resolved, error)
}

// outageKey is the key of the outage recorder in a context.
type outageKey struct{}

// outage records that something outside of the node could not be read.
type outage struct{ err error }

// ObserveRegistrations is ObserveKV for the function that a Loader reads
// registrations by.
func ObserveRegistrations(get manifest.ReadRegistrations) manifest.ReadRegistrations {
	return func(ctx context.Context, cluster, protocol, service, address string) ([]model.Registration, error) {
		found, err := get(ctx, cluster, protocol, service, address)
		if o, ok := ctx.Value(outageKey{}).(*outage); ok && err != nil {
			o.err = err
		}
		return found, err
	}
}

// ObserveKV wraps the function that a Loader reads keys by, so that the agent
// can tell a manifest that is wrong from one whose data could not be read.
func ObserveKV(get func(ctx context.Context, bucket, key string) ([]byte, error)) func(ctx context.Context, bucket, key string) ([]byte, error) {
	return func(ctx context.Context, bucket, key string) ([]byte, error) {
		value, err := get(ctx, bucket, key)
		if o, ok := ctx.Value(outageKey{}).(*outage); ok && err != nil {
			o.err = err
		}

		return value, err
	}
}
