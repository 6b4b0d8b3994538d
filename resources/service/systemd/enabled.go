package systemd

import (
	"context"
	"errors"
	"slices"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/resource"
)

// enabledUnits is the folder of the records of the links that muster made for each unit.
const enabledUnits = "enabled"

// rememberLinks records the links of the [Install] sections of services that were just enabled.
func (c *changer) rememberLinks(ctx context.Context, env resource.Env, names []string) {
	for _, unit := range unitNames(names) {
		i, ok := readInstall(c.reader.root, unit)
		if !ok {
			continue
		}
		if err := env.Host.Remember(ctx, enabledUnits, unit, i.links); err != nil && !errors.Is(err, state.ErrNone) {
			env.Log.WarnContext(ctx, "links of enabled unit not recorded", "unit", unit, "error", err)
		}
	}
}

// wasEnabled reports whether muster made any of the links of a unit.
func wasEnabled(env resource.Env, unit string, links []string) bool {
	if env.Host == nil || len(links) == 0 {
		return false
	}
	recorded, _, err := host.Recall[[]string](env.Host, enabledUnits, unit)

	return err == nil && slices.ContainsFunc(links, func(link string) bool { return slices.Contains(recorded, link) })
}
