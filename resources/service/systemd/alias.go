package systemd

import (
	"fmt"
	"slices"
	"sync"

	"github.com/musterfleet/muster/resources/service"
)

// maxNamed is the maximum number of runs with stored names, because runs may run in parallel.
const maxNamed = 16

// names holds the names that runs use for units.
type names struct {
	mu sync.Mutex
	// runs holds the names of each run, the newest last.
	runs []named
}

// named holds the names of one run.
type named struct {
	run string
	// units maps names to units, and first maps units to the first name that the run used.
	units, first map[string]string
}

// of returns the names of a run. It stores nothing for calls outside of a run. The caller holds the lock.
func (n *names) of(run string) named {
	at := slices.IndexFunc(n.runs, func(r named) bool { return r.run == run })
	if at >= 0 && run != "" {
		return n.runs[at]
	}
	if at >= 0 {
		n.runs = slices.Delete(n.runs, at, at+1)
	}
	r := named{run: run, units: map[string]string{}, first: map[string]string{}}
	n.runs = append(n.runs[max(0, len(n.runs)-maxNamed+1):], r)

	return r
}

// note records the unit of a name. A second name of a unit in a run is an error.
func (n *names) note(run, name, unit string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.of(run)
	if r.first[unit] == "" {
		r.first[unit] = name
	}
	r.units[name] = unit
	if other := r.first[unit]; other != name {
		return fmt.Errorf("%s and %s are names of one unit, %s, which is declared twice: leave one of them out", other, name, unit)
	}

	return nil
}

// resolve returns the units of services. It keeps a service that the run did not observe under another
// name.
func (n *names) resolve(run string, services []string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := slices.IndexFunc(n.runs, func(r named) bool { return r.run == run })
	out := slices.Clone(services)
	for i, name := range services {
		if at < 0 {
			break
		}
		if unit := service.UnitName(name); n.runs[at].units[unit] != "" && n.runs[at].units[unit] != unit {
			out[i] = n.runs[at].units[unit]
		}
	}

	return out
}
