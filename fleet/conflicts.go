package fleet

import (
	"maps"
	"slices"

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
	byKey := push.inForce(nodes, func(name string) bool { return name != push.Name })
	var out []InForce
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		out = append(out, InForce{key, byKey[key]})
	}

	return out
}

// Replaces returns the keys of the push, and those of its name that its targets
// would not run any more.
func (push Push) Replaces(nodes []model.Node) []string {
	keys := push.inForce(nodes, func(name string) bool { return name == push.Name })
	for _, t := range push.Targets {
		keys[t.Key(push.Name)] = nil
	}

	return slices.Sorted(maps.Keys(keys))
}

// inForce returns the keys of some names that are in force where a push would be,
// with the nodes that say so. What is not for a node it cannot run.
func (push Push) inForce(nodes []model.Node, of func(name string) bool) map[string][]string {
	out := map[string][]string{}
	for _, n := range nodes {
		v := newView(&n)
		if !slices.ContainsFunc(push.Targets, func(t Target) bool { return v.isIn(t) && v.activeAhead(t, push.Name) == "" }) {
			continue
		}
		for key, m := range n.Manifests {
			if t, name, err := ParseKey(key); err == nil && of(name) && m.Revision > 0 && v.isIn(t) {
				out[key] = append(out[key], n.Node)
			}
		}
	}

	return out
}
