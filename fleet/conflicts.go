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
	push.addInForce(keys, nodes, func(name string) bool { return name != push.Name })

	return slices.Sorted(maps.Keys(keys))
}

// Replaces returns the keys of the push, and those of its name that its targets
// would not run any more.
func (push Push) Replaces(nodes []model.Node) []string {
	keys := map[string]bool{}
	for _, t := range push.Targets {
		keys[t.Key(push.Name)] = true
	}
	push.addInForce(keys, nodes, func(name string) bool { return name == push.Name })

	return slices.Sorted(maps.Keys(keys))
}

// addInForce adds the keys of some names that are in force where a push would be.
func (push Push) addInForce(keys map[string]bool, nodes []model.Node, of func(name string) bool) {
	for _, n := range nodes {
		if !slices.ContainsFunc(push.Targets, func(t Target) bool { return t.Includes(n.NodeState) && activeAhead(t, push.Name, n) == "" }) {
			continue
		}
		for key, m := range n.Manifests {
			if _, name, err := ParseKey(key); err == nil && of(name) && m.Revision > 0 {
				keys[key] = true
			}
		}
	}
}

// activeAhead returns the key of a name that a node runs from a target that wins
// over t, empty for none.
func activeAhead(t Target, name string, n model.Node) string {
	for key, m := range n.Manifests {
		other, same, err := ParseKey(key)
		if err == nil && same == name && m.Revision > 0 && other.Includes(n.NodeState) && precedence(other, n.NodeState) < precedence(t, n.NodeState) {
			return key
		}
	}

	return ""
}
