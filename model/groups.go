package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Groups are the groups that operators assign to a node (io.muster.v1.groups), in addition to the groups of
// its configuration. They are the value of the control key node.<node>.groups.
type Groups struct {
	Protocol string   `json:"protocol"`
	Groups   []string `json:"groups" jsonschema_description:"Groups of the node, in addition to the groups of its configuration"`
	// Order lists groups that take precedence over the others, highest first. It may include groups of the
	// configuration.
	Order []string `json:"order,omitempty" jsonschema_description:"Groups that take precedence over the others, highest first; default: groups_order of the configuration"`
}

// MaxGroups limits the groups that operators can assign to a node.
const MaxGroups = 64

// DecodeGroups decodes groups strictly. The error wraps ErrInvalidControl.
func DecodeGroups(data []byte) (Groups, error) {
	var g Groups
	if len(data) > MaxControl {
		return g, fmt.Errorf("%w: %d bytes, at most %d are read", ErrInvalidControl, len(data), MaxControl)
	}
	if err := DecodeStrict(data, &g); err != nil {
		return Groups{}, fmt.Errorf("%w: %w", ErrInvalidControl, err)
	}

	return g, g.Check()
}

// Check reports whether groups are valid; the error wraps ErrInvalidControl.
func (g Groups) Check() error {
	if g.Protocol != ProtocolGroups {
		return fmt.Errorf("%w: its protocol is not %s", ErrInvalidControl, ProtocolGroups)
	}
	if n := max(len(g.Groups), len(g.Order)); n > MaxGroups {
		return fmt.Errorf("%w: %d groups, at most %d are allowed", ErrInvalidControl, n, MaxGroups)
	}
	if err := checkGroups(g.Groups); err != nil {
		return err
	}

	return checkGroups(g.Order)
}

func checkGroups(groups []string) error {
	for i, name := range groups {
		switch {
		case !isName(name):
			return fmt.Errorf("%w: group %q, use letters, digits, - and _ only, not beginning with _", ErrInvalidControl, name)
		case name == GroupAll:
			return fmt.Errorf("%w: every node is in the group %s", ErrInvalidControl, GroupAll)
		case slices.Index(groups, name) < i:
			return fmt.Errorf("%w: group %s is given twice", ErrInvalidControl, name)
		}
	}

	return nil
}

// Join returns all groups of a node, the winning group first. The groups of operators
// win over the groups of the configuration. Order names groups that win over all others;
// configuredOrder is used if Order is empty.
func (g Groups) Join(configured, configuredOrder []string) []string {
	order := g.Order
	if len(order) == 0 {
		order = configuredOrder
	}
	all := []string{}
	for _, name := range slices.Concat(g.Groups, configured) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })

	return all
}

// String returns the groups and their order: canary, web; order: web. It is empty for no groups.
func (g Groups) String() string {
	text := strings.Join(g.Groups, ", ")
	if len(g.Order) > 0 {
		text = strings.TrimPrefix(text+"; order: "+strings.Join(g.Order, ", "), "; ")
	}

	return text
}
