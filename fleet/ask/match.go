package ask

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Match is the nodes of a target.
type Match struct {
	fleet.Selection
	// All is set if the nodes are a whole fleet that is not small.
	All bool
}

// Digest returns a digest of the node names. It differs for any other set of nodes.
func (m Match) Digest() string {
	names := make([]string, len(m.Nodes))
	for i, n := range m.Nodes {
		names[i] = n.Node
	}
	slices.Sort(names)

	return model.DigestOf([]byte(strings.Join(names, "\n")))
}

// matchOf returns the nodes of a target.
func matchOf(m Model, t Target) (Match, error) {
	if err := t.check(); err != nil {
		return Match{}, err
	}
	found, err := m.Select(t.On)
	if err != nil {
		return Match{}, err
	}
	switch {
	case t.Group != "":
		of := fleet.Target{Group: t.Group}
		found.Nodes = slices.DeleteFunc(found.Nodes, func(n model.Node) bool { return !of.Includes(n.NodeState) })
	case len(t.Nodes) > 0:
		if found.Nodes, err = pick(found.Nodes, t.Nodes); err != nil {
			return Match{}, err
		}
	}
	if len(found.Nodes) == 0 {
		return Match{found, false}, fmt.Errorf("%w: %s", ErrNobody, t)
	}

	return Match{found, len(found.Nodes) == found.Known && found.Known > fleet.MaxUnconfirmed}, nil
}

// pick returns nodes by name. An unknown name is an error.
func pick(all []model.Node, names []string) ([]model.Node, error) {
	var out []model.Node
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		at := slices.IndexFunc(all, func(n model.Node) bool { return n.Node == name })
		if at < 0 {
			return nil, fmt.Errorf("%w: node %s is unknown", ErrNobody, name)
		}
		out = append(out, all[at])
	}

	return out, nil
}

// confirmed returns an error if the nodes are not those that the user confirmed.
func (s *Spec) confirmed(m Match) error {
	switch {
	case m.All && !s.All && s.Kind != Preview: // a preview changes nothing
		return fmt.Errorf("%w (%d)", ErrAll, len(m.Nodes))
	case s.Kind == Preview && len(m.Nodes)*len(s.Previewed.Value) > maxSent:
		return refuse("the preview has %d bytes, too many for %d nodes: select fewer nodes or use muster fleet preview --bundle", len(s.Previewed.Value), len(m.Nodes))
	case s.Expect.Nodes != 0 && s.Expect.Nodes != len(m.Nodes):
		return fmt.Errorf("%w: %d instead of %d", ErrOthers, len(m.Nodes), s.Expect.Nodes)
	case s.Expect.Digest != "" && s.Expect.Digest != m.Digest():
		return fmt.Errorf("%w: they are not the same %d nodes", ErrOthers, len(m.Nodes))
	default:
		return nil
	}
}
