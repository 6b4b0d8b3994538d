package assign

import (
	"maps"
	"slices"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// InForce is the key of an assignment, and the nodes that report it as active.
type InForce struct {
	Key   string
	Nodes []string
}

// InForceBeside returns the active keys of other names on the targets of a push, as nodes report them. Nodes
// reject a manifest that declares a resource differently than one of these.
func (push Push) InForceBeside(nodes []model.Node) []InForce {
	byKey := fleet.ActiveKeys(push.Targets, push.Name, nodes, func(name string) bool { return name != push.Name })
	var out []InForce
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		out = append(out, InForce{key, byKey[key]})
	}

	return out
}

// Replaces returns the keys of the push, and the keys of its name that its targets would no longer run.
func (push Push) Replaces(nodes []model.Node) []string {
	keys := fleet.ActiveKeys(push.Targets, push.Name, nodes, func(name string) bool { return name == push.Name })
	for _, t := range push.Targets {
		keys[t.Key(push.Name)] = nil
	}

	return slices.Sorted(maps.Keys(keys))
}
