package telemetry

import (
	"maps"
	"slices"
)

const (
	// maxLabels limits the number of label values, and maxLabelLength their length in bytes. An operator of
	// one group can create any number of keys.
	maxLabels      = 500
	maxLabelLength = 200
	// OtherLabel is the shared label value of all other keys. It is never a valid key.
	OtherLabel = "other"
)

// LabelValues is the set of keys that have a separate label value. Create it as an empty map.
type LabelValues map[string]bool

// Of returns the label value of a key: the key or OtherLabel.
func (n LabelValues) Of(key string) string {
	if n[key] {
		return key
	}

	return OtherLabel
}

// RetainLabels removes the label values of all keys that are not in keys, and returns them. It then adds
// keys until the set is full. A key stays in the set as long as each call contains it.
func RetainLabels[V any](n LabelValues, keys map[string]V) (gone []string) {
	for key := range n {
		if _, ok := keys[key]; !ok {
			gone = append(gone, key)
			delete(n, key)
		}
	}
	if len(n) == len(keys) || len(n) == maxLabels {
		return gone
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if len(n) < maxLabels && len(key) <= maxLabelLength {
			n[key] = true
		}
	}

	return gone
}
