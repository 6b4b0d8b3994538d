package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
)

// Stable returns the facts without values that change all the time: uptime,
// processes, clock speeds, and of memory and file systems all but the size. The
// boot time is left out because it moves with the clock. What differs is
// copied.
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

// at returns the map at a path, nil when there is none.
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
