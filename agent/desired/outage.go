package desired

import (
	"context"

	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/manifest"
)

// outageKey is the key of the outage recorder in a context.
type outageKey struct{}

// outage records failed reads of data from outside the node.
type outage struct{ err error }

func observeOutage[T any](ctx context.Context, value T, err error) (T, error) {
	if o, ok := ctx.Value(outageKey{}).(*outage); ok && err != nil {
		o.err = err
	}

	return value, err
}

// ObserveRegistrations wraps the function by which a Loader reads registrations, like ObserveKV.
func ObserveRegistrations(get manifest.ReadRegistrations) manifest.ReadRegistrations {
	return func(ctx context.Context, cluster, protocol, service, address string) ([]registration.Registration, error) {
		found, err := get(ctx, cluster, protocol, service, address)
		return observeOutage(ctx, found, err)
	}
}

// ObserveKV wraps the function by which a Loader reads keys. It distinguishes an invalid manifest from a
// manifest whose data could not be read.
func ObserveKV(get func(ctx context.Context, bucket, key string) ([]byte, error)) func(ctx context.Context, bucket, key string) ([]byte, error) {
	return func(ctx context.Context, bucket, key string) ([]byte, error) {
		value, err := get(ctx, bucket, key)
		return observeOutage(ctx, value, err)
	}
}
