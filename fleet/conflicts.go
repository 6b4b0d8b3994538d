package fleet

import (
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
)

// InForceBeside returns the keys of other names that are in force where a push
// would be: nodes reject a manifest that declares a resource differently than one
// of these.
func (push Push) InForceBeside(nodes []model.Node) []string {
	keys := map[string]bool{}
	for _, n := range nodes {
		if !slices.ContainsFunc(push.Targets, func(t Target) bool { return t.Includes(n.NodeState) && !overridden(t, push.Name, n) }) {
			continue
		}
		for key, m := range n.Manifests {
			if _, name, err := ParseKey(key); err == nil && name != push.Name && m.Revision > 0 {
				keys[key] = true
			}
		}
	}

	return slices.Sorted(maps.Keys(keys))
}

// overridden reports whether a node runs a name from a target that wins over t.
func overridden(t Target, name string, n model.Node) bool {
	for key, m := range n.Manifests {
		other, same, err := ParseKey(key)
		if err == nil && same == name && m.Revision > 0 && other.Includes(n.NodeState) && precedence(other, n.NodeState) < precedence(t, n.NodeState) {
			return true
		}
	}

	return false
}
