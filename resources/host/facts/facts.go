// Package facts gathers the facts of a node: from the system, without starting
// a process, using the network or sleeping, and from the administrator's fact
// files.
package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/musterfleet/muster/model"
)

// Options configure Gather.
type Options struct {
	// Dir is the configuration directory, which may hold facts.json, facts.yaml and
	// facts.d with files of both kinds. Empty means none.
	Dir string
	// Extra are merged last, in their order; maps in the form of decoded JSON.
	Extra []map[string]any
	// OnlyExtra leaves out the facts of the machine.
	OnlyExtra bool
}

// source is one part of the system's facts. What it returns beside an error is
// merged too.
type source struct {
	name   string
	gather func(context.Context) (map[string]any, error)
}

// Gather returns the facts in the form of decoded JSON: maps, lists, strings,
// float64, bool and nil. Later ones win over earlier ones, map by map: system,
// facts.json, facts.yaml, facts.d in name order, Extra. A fact that cannot be
// read is left out, with an error of its own; one about a fact file is a
// model.Problem.
func Gather(ctx context.Context, o Options) (model.Facts, []error) {
	sources := []source{
		{"names", gatherNames},
		{"host", gatherHost},
		{"cpu", gatherCPU},
		{"memory", gatherMemory},
		{"partitions", gatherPartitions},
		{"network", gatherNetwork},
		{"custom", func(context.Context) (map[string]any, error) { return readCustom(o.Dir) }},
	}
	if o.OnlyExtra {
		sources = nil
	}
	found := make([]map[string]any, len(sources))
	failed := make([]error, len(sources))
	var running sync.WaitGroup
	for i, s := range sources {
		running.Go(func() { found[i], failed[i] = s.gather(ctx) })
	}
	running.Wait()

	facts := map[string]any{}
	for _, part := range append(found, o.Extra...) {
		merge(facts, part)
	}
	var errs []error
	for i, err := range failed {
		errs = append(errs, split(sources[i].name, err)...)
	}

	return facts, errs
}

// split returns the joined errors of a source one by one.
func split(name string, err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{fmt.Errorf("could not gather facts of %s: %w", name, err)}
	}
	var errs []error
	for _, one := range joined.Unwrap() {
		errs = append(errs, split(name, one)...)
	}

	return errs
}

// merge adds the values of from to to, map by map.
func merge(to, from map[string]any) {
	for key, value := range from {
		below, isMap := value.(map[string]any)
		if !isMap {
			to[key] = value
			continue
		}
		// A new map, so that a later merge does not change the source.
		at, ok := to[key].(map[string]any)
		if !ok {
			at = make(map[string]any, len(below))
			to[key] = at
		}
		merge(at, below)
	}
}

// plain returns a value in the form of decoded JSON.
func plain(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(text, &out)

	return out, err
}
