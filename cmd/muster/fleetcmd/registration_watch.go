package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

func (c *registrationCommand) watch(ctx context.Context) error {
	store, err := c.Store(ctx)
	if err != nil {
		return err
	}
	current := map[string]kvstore.Registered{}
	complete, written := false, false
	for r, err := range kvstore.NewRegistrations(store).WatchRegistrations(ctx, c.filter) {
		switch {
		case err != nil && errors.Is(context.Cause(ctx), cli.ErrInterrupted):
			return nil
		case errors.Is(err, model.ErrInvalidName):
			return cli.Usagef("%w", err)
		case errors.Is(err, kvstore.ErrInvalidRegistration):
			c.Log.Warn("invalid registration", "error", err)
			continue
		case errors.Is(err, kvstore.ErrRegistrationsNotCurrent):
			c.Log.Warn(err.Error())
			continue
		case err != nil:
			return err
		}
		changed := update(current, r)
		complete = complete || r.Node == ""
		switch {
		case c.prometheus == "" && r.Node != "" && changed:
			err = c.Print.Item(c.Format, r, line(r))
		case c.prometheus == "" || !complete || !changed && r.Node != "":
		case written:
			c.keepTargets(ctx, slices.Collect(maps.Values(current)))
		default:
			written, err = true, c.writeTargets(ctx, slices.Collect(maps.Values(current)))
		}
		if errors.Is(err, syscall.EPIPE) {
			return nil // the reader closed the pipe
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// update records a registration, and reports whether it differs from the recorded one.
func update(current map[string]kvstore.Registered, r kvstore.Registered) bool {
	key := identity(r)
	old, known := current[key]
	if r.Gone {
		delete(current, key)
		return known
	}
	if r.Node == "" {
		return false
	}
	current[key] = r

	return !known || old.Priority != r.Priority || !maps.Equal(old.Annotations, r.Annotations)
}

func line(r kvstore.Registered) string {
	sign := "+"
	if r.Gone {
		sign = "-"
	}

	return fmt.Sprintf("%s %s priority %d", sign, identity(r), r.Priority)
}
