package agent

import (
	"context"
	"io"
	"time"

	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Assignments is what the node is told to run.
type Assignments interface {
	// Run keeps the entries current until ctx ends, and calls wake whenever they
	// or their Sync may have changed, with the keys if it knows them. wake does not
	// block. An error is not the end: Run is called again after a while.
	Run(ctx context.Context, wake func(keys []string)) error
	// Entries gives the entries as they are known now, by key.
	Entries() (map[string]model.Entry, model.Sync)
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

// MessageBound is a Publisher that knows how long a message may be.
type MessageBound interface {
	// MaxMessage gives how many bytes the server takes; zero while it is not known.
	MaxMessage() int64
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
	requests.Loader
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
