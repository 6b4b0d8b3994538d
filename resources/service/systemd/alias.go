package systemd

import (
	"fmt"
	"sync"

	"github.com/musterfleet/muster/resources/service"
)

// names are the names under which units were observed in a run.
type names struct {
	mu  sync.Mutex
	run string
	// units are the units by their names, first the names under which they were
	// observed first.
	units, first map[string]string
}

// note records the unit of a name. A second name of a unit in a run
// is an error.
func (n *names) note(run, name, unit string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.units == nil || run == "" || n.run != run {
		n.run, n.units, n.first = run, map[string]string{}, map[string]string{}
	}
	if n.first[unit] == "" {
		n.first[unit] = name
	}
	n.units[name] = unit
	if other := n.first[unit]; other != name {
		return fmt.Errorf("%s and %s are names of one unit, %s, which is declared twice: leave one of them out", other, name, unit)
	}

	return nil
}

// resolve returns the units of services, as far as they were observed under other
// names.
func (n *names) resolve(services []string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]string, len(services))
	for i, name := range services {
		out[i] = name
		if unit := service.UnitName(name); n.units[unit] != "" && n.units[unit] != unit {
			out[i] = n.units[unit]
		}
	}

	return out
}
