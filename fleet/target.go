package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// GroupAll is the group that every node is in.
const GroupAll = "all"

// ErrInvalidTarget is a target or key that is not node.<node> or group.<group>,
// with a manifest's name behind it where it is a key.
var ErrInvalidTarget = errors.New("invalid target")

// Target is whom something is for: one node, or the members of a group. One of
// the two is set.
type Target struct{ Node, Group string }

// String gives the family of keys of the target: node.web01 or group.web.
func (t Target) String() string {
	if t.Node != "" {
		return "node." + t.Node
	}

	return "group." + t.Group
}

// MarshalText gives the form of String, for JSON and YAML.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Key gives the key of an assignment of the target.
func (t Target) Key(name string) string { return t.String() + "." + name }

// Includes says that a node is the target, or in its group.
func (t Target) Includes(n model.NodeState) bool {
	switch t.Group {
	case "":
		return n.Node == t.Node
	case GroupAll:
		return true
	default:
		return slices.Contains(n.Groups, t.Group)
	}
}

// ParseTarget reads the form of String. The error wraps ErrInvalidTarget.
func ParseTarget(family string) (Target, error) {
	kind, id, _ := strings.Cut(family, ".")
	if id != "" && !strings.Contains(id, ".") {
		switch kind {
		case "node":
			return Target{Node: id}, nil
		case "group":
			return Target{Group: id}, nil
		}
	}

	return Target{}, fmt.Errorf("%w: %q, write node.<node> or group.<group>", ErrInvalidTarget, family)
}

// ParseKey takes the key of an assignment apart. The error wraps ErrInvalidTarget.
func ParseKey(key string) (Target, string, error) {
	at := strings.LastIndexByte(key, '.')
	if at > 0 && at < len(key)-1 {
		if t, err := ParseTarget(key[:at]); err == nil {
			return t, key[at+1:], nil
		}
	}

	return Target{}, "", fmt.Errorf("%w: key %q, write node.<node>.<name> or group.<group>.<name>", ErrInvalidTarget, key)
}

// Targets makes targets of names, each once: nodes, then groups, then all.
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
		add(Target{Group: GroupAll})
	}

	return out
}

// order is the order in which a node obeys: its own assignments, those of its
// groups as it lists them, those of all. It is negative for what is not its.
func order(t Target, n model.NodeState) int {
	switch {
	case !t.Includes(n):
		return -1
	case t.Node != "":
		return 0
	case t.Group == GroupAll:
		return len(n.Groups) + 1
	default:
		return 1 + slices.Index(n.Groups, t.Group)
	}
}
