package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/registrations"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// Registrations returns what the function registrations calls. It logs
// registrations that cannot be read, and leaves them out.
func Registrations(log *slog.Logger, open StoreFunc) manifest.ReadRegistrations {
	return func(ctx context.Context, cluster, protocol, service, address string) ([]model.Registration, error) {
		store, err := open(ctx)
		if err != nil {
			return nil, err
		}
		all, err := FindRegistrations(ctx, log, store, registrations.Filter{Cluster: cluster, Protocol: protocol, Service: service, Address: address})
		out := make([]model.Registration, len(all))
		for i, r := range all {
			out[i] = r.Registration
		}
		return out, err
	}
}

// FindRegistrations reads registrations. It logs those that cannot be read, and
// leaves them out.
func FindRegistrations(ctx context.Context, log *slog.Logger, store *kvstore.Store, filter registrations.Filter) ([]registrations.Registered, error) {
	all, err := registrations.New(store).Registrations(ctx, filter)
	if errors.Is(err, registrations.ErrInvalidRegistration) {
		log.Warn("invalid registrations left out", "error", err)
		err = nil
	}

	return all, err
}
