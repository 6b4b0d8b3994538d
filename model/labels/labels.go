// Package labels bounds the labels of metrics whose values others choose.
package labels

import (
	"maps"
	"slices"
)

const (
	// most is how many keys are labels themselves, and maxName their length in bytes: whoever
	// may assign to one group may assign as many as the bucket holds.
	most    = 500
	maxName = 200
	// Other is the label of all further keys together. No key is like it.
	Other = "other"
)

// Names are the keys that are labels themselves. Make it as an empty map.
type Names map[string]bool

// Of returns the label of a key.
func (n Names) Of(key string) string {
	if n[key] {
		return key
	}

	return Other
}

// Retain takes the names of all but the given keys away, which it returns, and gives these one
// while there is room. A key keeps its name while it is given.
func Retain[V any](n Names, keys map[string]V) (gone []string) {
	for key := range n {
		if _, ok := keys[key]; !ok {
			gone = append(gone, key)
			delete(n, key)
		}
	}
	if len(n) == len(keys) || len(n) == most {
		return gone
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if len(n) < most && len(key) <= maxName {
			n[key] = true
		}
	}

	return gone
}
