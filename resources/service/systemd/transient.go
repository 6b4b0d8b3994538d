package systemd

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/resource"
)

// transients is the folder of the records of stopped transient units. systemd forgets these
// units; the record distinguishes them from wrong names.
const transients = "transients"

// rememberTransient finds the transient units among services. Call the returned function after
// the stop: it records the units that no longer exist.
func (c *changer) rememberTransient(ctx context.Context, env resource.Env, names []string) func() {
	exists := func(unit string) bool {
		_, err := os.Lstat(filepath.Join(c.reader.root, "run/systemd/transient", unit))
		return err == nil
	}
	var units []string
	for _, unit := range unitNames(names) {
		if exists(unit) {
			units = append(units, unit)
		}
	}

	return func() {
		for _, unit := range units {
			if exists(unit) {
				continue
			}
			if err := env.Host.Remember(ctx, transients, unit, true); err != nil && !errors.Is(err, state.ErrNone) {
				env.Log.WarnContext(ctx, "stopped transient unit not recorded", "unit", unit, "error", err)
			}
		}
	}
}

// wasTransient reports whether muster stopped a transient unit of this name.
func wasTransient(env resource.Env, unit string) bool {
	if env.Host == nil {
		return false
	}
	_, found, err := host.Recall[bool](env.Host, transients, unit)

	return err == nil && found
}
