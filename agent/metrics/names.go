package metrics

import (
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
)

const (
	// maxNamed bounds the manifests with series of their own, and maxName their keys in
	// bytes: whoever may assign to one group may assign as many as the bucket holds.
	maxNamed = 500
	maxName  = 200
	// others is the label of all further manifests together. No key is like it.
	others = "other"
)

// names are the keys that are labels themselves.
type names map[string]bool

// of returns the label of a manifest.
func (n names) of(key string) string {
	if n[key] {
		return key
	}

	return others
}

// retain takes the names of all but the assigned manifests away, which it returns, and
// gives these one while there is room. A manifest keeps its name while it is assigned.
func (n names) retain(assigned map[string]model.ManifestState) (gone []string) {
	for key := range n {
		if _, ok := assigned[key]; !ok {
			gone = append(gone, key)
			delete(n, key)
		}
	}
	if len(n) == len(assigned) || len(n) == maxNamed {
		return gone
	}
	for _, key := range slices.Sorted(maps.Keys(assigned)) {
		if len(n) < maxNamed && len(key) <= maxName {
			n[key] = true
		}
	}

	return gone
}
