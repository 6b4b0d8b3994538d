package fleet

import (
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Target is one node, or the members of a group. One of the two is set.
type Target struct{ Node, Group string }

// String returns the family of keys of the target: node.web01 or group.web.
func (t Target) String() string {
	if t.Node != "" {
		return model.NodeFamily(t.Node)
	}

	return model.GroupFamily(t.Group)
}

// MarshalText returns the form of String, for JSON and YAML.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Key returns the key of an assignment of the target.
func (t Target) Key(name string) string { return model.Key(t.String(), name) }

// Includes reports whether a node is the target, or in its group.
func (t Target) Includes(n model.NodeState) bool {
	switch t.Group {
	case "":
		return n.Node == t.Node
	case model.GroupAll:
		return true
	default:
		return slices.Contains(n.Groups, t.Group)
	}
}

// ParseKey splits the key of an assignment. The error wraps
// model.ErrInvalidName.
func ParseKey(key string) (Target, string, error) {
	if err := model.CheckKey(key); err != nil {
		return Target{}, "", err
	}
	family, name, _ := model.SplitKey(key)
	if node, ok := strings.CutPrefix(family, model.NodeFamily("")); ok {
		return Target{Node: node}, name, nil
	}

	return Target{Group: strings.TrimPrefix(family, model.GroupFamily(""))}, name, nil
}

// Targets returns targets by names, each once: nodes, then groups, then all.
func Targets(nodes, groups []string, all bool) []Target {
	var out []Target
	add := func(t Target) {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	for _, n := range nodes {
		add(Target{Node: n})
	}
	for _, g := range groups {
		add(Target{Group: g})
	}
	if all {
		add(Target{Group: model.GroupAll})
	}

	return out
}
