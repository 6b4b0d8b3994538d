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

// transients is the folder of records of stopped units that existed only while they ran: transient
// units, and units with a removed file. A record distinguishes such a unit from a wrong name.
const transients = "transients"

// rememberTransient finds the units among services that exist only while they run. Call the
// returned function after the stop: it records the units that no longer exist.
func (c *changer) rememberTransient(ctx context.Context, env resource.Env, names []string) func() {
	exists := func(unit string) bool {
		_, err := os.Lstat(filepath.Join(c.reader.root, "run/systemd/transient", unit))
		return err == nil
	}
	hasFile := func(unit string) bool {
		_, _, found := unitFile(c.reader.root, unit)
		return found
	}
	var units []string
	for _, unit := range unitNames(names) {
		if exists(unit) || !hasFile(unit) {
			units = append(units, unit)
		}
	}

	return func() {
		for _, unit := range units {
			if exists(unit) || hasFile(unit) {
				continue
			}
			if err := env.Host.Remember(ctx, transients, unit, true); err != nil && !errors.Is(err, state.ErrNone) {
				env.Log.WarnContext(ctx, "stopped transient unit not recorded", "unit", unit, "error", err)
			}
		}
	}
}

// wasTransient reports whether muster stopped a unit of this name that existed only while it ran.
func wasTransient(env resource.Env, unit string) bool {
	if env.Host == nil {
		return false
	}
	_, found, err := host.Recall[bool](env.Host, transients, unit)

	return err == nil && found
}
