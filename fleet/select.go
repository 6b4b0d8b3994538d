package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/musterfleet/muster/fleet/targets"

	"github.com/musterfleet/muster/model"
)

// MaxUnconfirmed limits the nodes of a fleet for requests to all nodes without confirmation.
const MaxUnconfirmed = 10

// Selection contains the nodes of a target at the time of the selection.
type Selection struct {
	// Nodes are the matching nodes, by name.
	Nodes []model.Node
	// Undecided are the nodes that may match, by name.
	Undecided []Undecided
	// Known is the number of nodes.
	Known int
	// Warnings are probable mistakes in the expression, and the names in it that no node has.
	Warnings []string
}

// ErrStrict means that a strict expression has warnings or undecided nodes.
var ErrStrict = errors.New("the expression is strict")

// Targets returns the matching nodes as targets.
func (s Selection) Targets() []Target {
	out := make([]Target, len(s.Nodes))
	for i, n := range s.Nodes {
		out[i] = Target{Node: n.Node}
	}

	return out
}

// Names returns the names of the matching nodes.
func (s Selection) Names() map[string]bool {
	out := map[string]bool{}
	for _, n := range s.Nodes {
		out[n.Node] = true
	}

	return out
}

// Selector finds the nodes of target expressions. It reads only the data that an expression needs.
type Selector struct {
	// List returns all assignments.
	List func(ctx context.Context) ([]model.Entry, error)
	// Statuses returns the statuses of a node like Overview, if they are known: List is not called then. It
	// may be nil.
	Statuses func(n model.Node) []RolloutStatus
	// Facts yields the facts of nodes, in any order, without nodes that stored none. Of repeated nodes the
	// last facts count. An error ends it.
	Facts func(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error]
	// Inventories yields the inventories of some nodes, as Facts does. If it is nil, no node has an
	// inventory.
	Inventories func(ctx context.Context, nodes []string) iter.Seq2[model.Inventory, error]
}

// Select evaluates an expression for some nodes. It reads inventories and facts only of the nodes
// that need them. The error wraps ErrStrict for a strict expression with warnings or undecided nodes.
func (s Selector) Select(ctx context.Context, e *targets.Expression, nodes []model.Node) (Selection, error) {
	unknown := targets.NewFinder(e.Mentions())
	all, err := s.describe(ctx, e, nodes, unknown)
	if err != nil {
		return Selection{}, err
	}
	d := &decisions{expression: e, unknown: unknown, run: e.Evaluator().Until(ctx.Done()), matched: map[string]bool{}, undecided: map[string]string{}, open: map[string]*candidate{}}
	for _, n := range all {
		if n.Unreadable != "" && !e.UsesOnly(readable(n)...) {
			d.undecided[n.Node.Node] = WhyUnreadable(*n.Node)
			continue
		}
		if err := d.decide(ctx, &candidate{Node: n}, nil); err != nil {
			return Selection{}, err
		}
	}
	if err := s.complete(ctx, d); err != nil {
		return Selection{}, err
	}

	out := d.selection(nodes)
	out.Warnings = append(slices.Clone(e.Warnings()), unknown.Warnings(len(nodes))...)
	if e.Strict {
		if err := StrictError(append(slices.Clone(out.Warnings), out.incomplete()...)); err != nil {
			return Selection{}, err
		}
	}

	return out, nil
}

// StrictError returns an error that wraps ErrStrict for problems of a strict expression, nil for none.
func StrictError(problems []string) error {
	if len(problems) == 0 {
		return nil
	}

	return fmt.Errorf("%w: %s", ErrStrict, strings.Join(problems, "; "))
}

func (d *decisions) selection(nodes []model.Node) Selection {
	out := Selection{Known: len(nodes)}
	for _, n := range nodes {
		reason, is := d.undecided[n.Node]
		switch {
		case is:
			out.Undecided = append(out.Undecided, Undecided{n.Node, reason})
		case d.matched[n.Node]:
			out.Nodes = append(out.Nodes, n)
		}
	}

	return out
}

// describe returns the nodes with the values that an expression needs, including their status. It adds their
// names to unknown.
func (s Selector) describe(ctx context.Context, e *targets.Expression, nodes []model.Node, unknown *targets.Finder) ([]targets.Node, error) {
	out := make([]targets.Node, len(nodes))
	for i := range nodes {
		out[i].Node = &nodes[i]
		unknown.AddNode(&nodes[i])
	}
	if !e.UsesStatus() {
		return out, nil
	}
	statuses := s.Statuses
	if statuses == nil {
		entries, err := s.List(ctx)
		if err != nil {
			return nil, err
		}
		all := NewAssigned(entries)
		statuses = all.Statuses
	}
	for i, n := range nodes {
		of := statuses(n)
		addManifests(unknown, of)
		out[i].State = string(NodeStatus(n, of))
		if out[i].Manifest = ManifestsOf(of); !e.UsesReason() {
			continue
		}
		out[i].Reason = WhyNot(n, of)
	}

	return out, nil
}

// readable returns the known values of a node with an unreadable state.
func readable(n targets.Node) []string {
	known := []string{"node", "state", "reason", "heard", "age", "facts", "package"}
	if n.Groups != nil {
		known = append(known, "groups", "group")
	}

	return known
}
