// Package facts reads the facts of a node from the system and from the fact files of the administrator. It
// starts no process, does not use the network and does not sleep.
package facts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/musterfleet/muster/model"
)

// Options configure Gather.
type Options struct {
	// Dir is the configuration directory, empty for none. It may contain facts.json, facts.yaml, and facts.d
	// with such files.
	Dir string
	// Extra are merged last, in order. They have the form of decoded JSON.
	Extra []map[string]any
	// OnlyExtra leaves out the facts of the machine.
	OnlyExtra bool
}

// source reads one part of the facts of the system. If it fails, its partial result is merged as well.
type source struct {
	name   string
	gather func(context.Context) (map[string]any, error)
}

// Gather returns the facts in the form of decoded JSON: maps, lists, strings, float64, bool and nil. Later
// sources override earlier ones, map by map: system, facts.json, facts.yaml, the files in facts.d by name,
// Extra. Each fact that cannot be read is missing and returns an error. An error of a fact file is a
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

// split returns the joined errors of a source as a list.
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

// Stable returns the facts without values that change all the time: uptime, boot time, processes and clock
// speeds. Of memory and file systems it returns only the sizes. It does not change f.
func Stable(f model.Facts) model.Facts {
	out := map[string]any{}
	merge(out, f)
	if info := at(out, "host", "info"); info != nil {
		for _, key := range []string{"uptime", "procs", "bootTime"} {
			delete(info, key)
		}
	}
	keep(at(out, "memory", "virtual"), "total", "swapTotal", "hugePagesTotal", "hugePageSize")
	keep(at(out, "memory", "swap"), "total")
	each(at(out, "partition"), "partitions", func(partition map[string]any) {
		usage := map[string]any{}
		merge(usage, at(partition, "usage"))
		keep(usage, "path", "fstype", "total")
		partition["usage"] = usage
	})
	each(at(out, "cpu"), "info", func(cpu map[string]any) { delete(cpu, "mhz") })

	return out
}

// Digest returns the hex SHA-256 of the stable facts.
func Digest(f model.Facts) string {
	stable := Stable(f)
	text, err := json.Marshal(stable)
	if err != nil {
		text = fmt.Append(nil, stable)
	}
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}

func at(m map[string]any, path ...string) map[string]any {
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}

	return m
}

func keep(m map[string]any, keys ...string) {
	maps.DeleteFunc(m, func(key string, _ any) bool { return !slices.Contains(keys, key) })
}

// each replaces a list by one of changed copies of its maps.
func each(m map[string]any, key string, change func(map[string]any)) {
	list, ok := m[key].([]any)
	if !ok {
		return
	}
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = item
		if below, ok := item.(map[string]any); ok {
			copied := maps.Clone(below)
			change(copied)
			out[i] = copied
		}
	}
	m[key] = out
}
