package fleetcmd

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
)

// nobody returns the error of a goal that is for none of the nodes: of those that were selected, or of
// all that are known.
func (g Goal) nobody(names kvstore.Names, r fleet.Rollout) error {
	where := names.Run("fleet ls " + g.Name)
	if len(g.Nodes) > 0 {
		nodes := print.Some(slices.Sorted(maps.Keys(g.Nodes)), names.Run("fleet nodes")+" has all")
		if len(g.Keys) > 0 {
			return fmt.Errorf("%s is not assigned to %s", print.Some(g.Keys, where), nodes)
		}
		return fmt.Errorf("%s is not assigned to %s (it is for %s)", g.Name, nodes, waitTargets(r, where))
	}

	return fmt.Errorf("no known node matches: %s, which is for %s (see %s)", g.Name, waitTargets(r, where), names.Run("fleet nodes"))
}

// waitTargets lists the targets of the assignments in the rollout.
func waitTargets(r fleet.Rollout, where string) string {
	var out []string
	for _, e := range r.Entries {
		if t, _, err := fleet.ParseKey(e.Key); err == nil && (len(r.Keys) == 0 || slices.Contains(r.Keys, e.Key)) {
			out = append(out, t.String())
		}
	}
	slices.Sort(out)

	return print.Some(out, where)
}
