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

// JoinTargets returns targets on one line, separated by spaces.
func JoinTargets(all []Target) string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = t.String()
	}

	return strings.Join(out, " ")
}

// SplitTargets returns the targets of a text of JoinTargets. It skips invalid ones.
func SplitTargets(text string) []Target {
	var out []Target
	for _, family := range strings.Fields(text) {
		if model.CheckFamily(family) == nil {
			out = append(out, targetOf(family))
		}
	}

	return out
}

// targetOf returns the target of a valid family.
func targetOf(family string) Target {
	if node, ok := strings.CutPrefix(family, model.NodeFamily("")); ok {
		return Target{Node: node}
	}

	return Target{Group: strings.TrimPrefix(family, model.GroupFamily(""))}
}

// MarshalText returns the form of String, for JSON and YAML.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Key returns the key of an assignment of the target.
func (t Target) Key(name string) string { return model.Key(t.String(), name) }

// Includes reports whether a node is the target or in its group.
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

	return targetOf(family), name, nil
}

// Targets returns the distinct targets by names: nodes, groups, then all.
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
