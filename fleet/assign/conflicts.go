package assign

import (
	"maps"
	"slices"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// InForce is the key of an assignment, and the nodes whose states say that they run it.
type InForce struct {
	Key   string
	Nodes []string
}

// InForceBeside returns the keys of other names that are in force where a push
// would be, as far as nodes say: they reject a manifest that declares a resource
// differently than one of these.
func (push Push) InForceBeside(nodes []model.Node) []InForce {
	byKey := fleet.ActiveKeys(push.Targets, push.Name, nodes, func(name string) bool { return name != push.Name })
	var out []InForce
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		out = append(out, InForce{key, byKey[key]})
	}

	return out
}

// Replaces returns the keys of the push, and those of its name that its targets
// would not run any more.
func (push Push) Replaces(nodes []model.Node) []string {
	keys := fleet.ActiveKeys(push.Targets, push.Name, nodes, func(name string) bool { return name == push.Name })
	for _, t := range push.Targets {
		keys[t.Key(push.Name)] = nil
	}

	return slices.Sorted(maps.Keys(keys))
}
