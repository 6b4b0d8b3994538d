// Package fleet defines the targets of assignments and requests, and computes the status of each assignment on each
// node.
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

// MayInclude reports whether a node is the target or may be in its group: the groups of a node with an
// unreadable state may be unknown.
func (t Target) MayInclude(n model.Node) bool {
	return t.Includes(n.NodeState) || t.Group != "" && n.Unreadable != "" && n.Groups == nil
}

// unreadable returns the status of each assignment that may be for a node whose state
// cannot be read.
func (r Rollout) unreadable(n model.Node) []RolloutStatus {
	var out []RolloutStatus
	for _, e := range r.Entries {
		if t, _, err := ParseKey(e.Key); err == nil && t.MayInclude(n) && r.selects(e.Key) {
			out = append(out, RolloutStatus{Node: n.Node, Key: e.Key, Status: StatusUnreadable, Desired: e.Revision, Reason: WhyUnreadable(n)})
		}
	}

	return out
}

// WhyUnreadable returns the reason why the state of a node cannot be read, empty if it can.
func WhyUnreadable(n model.Node) string {
	if n.Unreadable == "" {
		return ""
	}

	return "its state cannot be read: " + Shorten(n.Unreadable)
}
