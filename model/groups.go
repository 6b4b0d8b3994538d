package model

import (
	"fmt"
	"slices"
	"strings"
)

// Groups are those that operators put a node into (io.muster.v1.groups), beside those of its
// configuration. They are the value of the control key node.<node>.groups.
type Groups struct {
	Protocol string   `json:"protocol"`
	Groups   []string `json:"groups" jsonschema_description:"Groups of the node, beside those of its configuration"`
}

// MaxGroups is in how many groups operators can put a node.
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
	if len(g.Groups) > MaxGroups {
		return fmt.Errorf("%w: %d groups, at most %d are kept", ErrInvalidControl, len(g.Groups), MaxGroups)
	}
	for i, name := range g.Groups {
		switch {
		case !isName(name):
			return fmt.Errorf("%w: group %q, use letters, digits, - and _ only, not beginning with _", ErrInvalidControl, name)
		case name == GroupAll:
			return fmt.Errorf("%w: every node is in the group %s", ErrInvalidControl, GroupAll)
		case slices.Index(g.Groups, name) < i:
			return fmt.Errorf("%w: group %s is given twice", ErrInvalidControl, name)
		}
	}

	return nil
}

// String returns the groups: canary, web; empty for none.
func (g Groups) String() string { return strings.Join(g.Groups, ", ") }
