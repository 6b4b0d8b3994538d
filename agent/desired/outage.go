package desired

import (
	"context"

	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/manifest"
)

// outageKey is the key of the outage recorder in a context.
type outageKey struct{}

// outage records that something outside of the node could not be read.
type outage struct{ err error }

func observeOutage[T any](ctx context.Context, value T, err error) (T, error) {
	if o, ok := ctx.Value(outageKey{}).(*outage); ok && err != nil {
		o.err = err
	}

	return value, err
}

// ObserveRegistrations is ObserveKV for the function that a Loader reads
// registrations by.
func ObserveRegistrations(get manifest.ReadRegistrations) manifest.ReadRegistrations {
	return func(ctx context.Context, cluster, protocol, service, address string) ([]registration.Registration, error) {
		found, err := get(ctx, cluster, protocol, service, address)
		return observeOutage(ctx, found, err)
	}
}

// ObserveKV wraps the function that a Loader reads keys by, so that an
// invalid manifest differs from one whose data could not be read.
func ObserveKV(get func(ctx context.Context, bucket, key string) ([]byte, error)) func(ctx context.Context, bucket, key string) ([]byte, error) {
	return func(ctx context.Context, bucket, key string) ([]byte, error) {
		value, err := get(ctx, bucket, key)
		return observeOutage(ctx, value, err)
	}
}
