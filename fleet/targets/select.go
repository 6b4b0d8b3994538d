package targets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/musterfleet/muster/fleet"
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
func (s Selection) Targets() []fleet.Target {
	out := make([]fleet.Target, len(s.Nodes))
	for i, n := range s.Nodes {
		out[i] = fleet.Target{Node: n.Node}
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
	// Statuses returns the statuses of a node, see fleet.Assigned. It is nil only if no expression uses statuses.
	Statuses func(n model.Node) []fleet.RolloutStatus
	// Facts yields the facts of nodes, in any order, without nodes that stored none. Of repeated nodes the
	// last facts count. An error ends it.
	Facts func(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error]
	// Inventories yields the inventories of some nodes, as Facts does. If it is nil, no node has an
	// inventory.
	Inventories func(ctx context.Context, nodes []string) iter.Seq2[model.Inventory, error]
}

// Select evaluates an expression for some nodes. It reads inventories and facts only of the nodes
// that need them. The error wraps ErrStrict for a strict expression with warnings or undecided nodes.
func (s Selector) Select(ctx context.Context, e *Expression, nodes []model.Node) (Selection, error) {
	unknown := NewFinder(e.Mentions())
	d := &decisions{expression: e, unknown: unknown, run: e.Evaluator().Until(ctx.Done()), matched: map[string]bool{}, undecided: map[string]string{}, open: map[string]*candidate{}}
	for i := range nodes {
		c := &candidate{Node: Node{Node: &nodes[i]}}
		s.describe(e, &c.Node, unknown)
		if n := nodes[i]; n.Unreadable != "" && !e.UsesOnly(readable(n)...) {
			d.undecided[n.Node] = fleet.WhyUnreadable(n)
			continue
		}
		if err := d.decide(ctx, c, nil); err != nil {
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

// describe adds the values that an expression needs to a node, and the names of the node to unknown.
func (s Selector) describe(e *Expression, n *Node, unknown *Finder) {
	unknown.AddNode(n.Node)
	if !e.UsesStatus() {
		return
	}
	statuses := s.Statuses(*n.Node)
	addManifests(unknown, statuses)
	n.State, n.Manifest = string(fleet.NodeStatus(*n.Node, statuses)), ManifestsOf(statuses)
	if e.UsesReason() {
		n.Reason = fleet.WhyNot(*n.Node, statuses)
	}
}

// readable returns the known values of a node with an unreadable state.
func readable(n model.Node) []string {
	known := []string{"node", "state", "reason", "heard", "age", "facts", "package"}
	if n.Groups != nil {
		known = append(known, "groups", "group")
	}

	return known
}

// The reasons of nodes without a document.
const (
	whyNoFacts     = "it has not stored its facts"
	whyNoInventory = "it has not stored an inventory"
)

// decisions are the results of an expression, by node.
type decisions struct {
	expression *Expression
	run        *Evaluator
	matched    map[string]bool
	// undecided has the reason of each undecided node.
	undecided map[string]string
	// open are the nodes that cannot be decided without their facts or inventory.
	open    map[string]*candidate
	unknown *Finder
}

// candidate is a node with its installed packages. unreadable is the reason why they cannot be read, empty if they can.
type candidate struct {
	Node
	installed  *Installed
	unreadable string
}

// decide evaluates the expression for a node. A node that needs a document stays open. The error is the error of ctx.
func (d *decisions) decide(ctx context.Context, c *candidate, facts model.Facts) error {
	name := c.Node.Node.Node
	delete(d.undecided, name)
	delete(d.open, name)
	var err error
	d.matched[name], err = d.run.Match(c.Node, Documents{Facts: facts, Installed: c.installed})
	switch {
	case errors.Is(err, ErrEnded):
		return ctx.Err()
	case errors.Is(err, ErrFactsNeeded):
		d.open[name], d.undecided[name] = c, whyNoFacts
	case errors.Is(err, ErrInventoryNeeded):
		d.open[name], d.undecided[name] = c, cmp.Or(c.unreadable, whyNoInventory)
	case err != nil:
		d.undecided[name] = fleet.Shorten(err.Error())
	}

	return nil
}

// complete decides the open nodes by their inventories, then by their facts. It reads inventories before facts, because
// only a few of their packages stay in memory.
func (s Selector) complete(ctx context.Context, d *decisions) error {
	if d.expression.UsesInventory() && s.Inventories != nil && len(d.open) > 0 {
		err := withDocuments(d, s.Inventories(ctx, d.openNames()), func(i model.Inventory) string { return i.Node }, func(c *candidate, i model.Inventory) error {
			if i.Unreadable != "" {
				c.unreadable = "its inventory cannot be read: " + fleet.Shorten(i.Unreadable)
			} else {
				d.unknown.AddPackages(i.Packages)
				c.installed = d.expression.Installed(i)
			}
			return d.decide(ctx, c, nil)
		})
		if err != nil {
			return err
		}
	}
	if !d.expression.UsesFacts() || len(d.open) == 0 {
		return nil
	}

	return withDocuments(d, s.Facts(ctx, d.openNames()), func(f model.NodeFacts) string { return f.Node }, func(c *candidate, f model.NodeFacts) error {
		if f.Unreadable != "" {
			d.undecided[f.Node] = "its facts cannot be read: " + fleet.Shorten(f.Unreadable)
			return nil
		}
		d.unknown.AddFacts(f.Facts)
		return d.decide(ctx, c, f.Facts)
	})
}

func (d *decisions) openNames() []string { return slices.Sorted(maps.Keys(d.open)) }

// withDocuments calls decide for each open node with a document in all.
func withDocuments[D any](d *decisions, all iter.Seq2[D, error], nodeOf func(D) string, decide func(*candidate, D) error) error {
	open := maps.Clone(d.open)
	for doc, err := range all {
		if err != nil {
			return err
		}
		if c := open[nodeOf(doc)]; c != nil {
			if err := decide(c, doc); err != nil {
				return err
			}
		}
	}

	return nil
}

// Undecided is a node that may be in a target.
type Undecided struct{ Node, Reason string }

// maxReasons is the maximum number of reasons that Reasons returns separately.
const maxReasons = 10

// Reason is the reason why it is unknown whether some nodes match.
type Reason struct {
	Reason string
	Nodes  []string
}

// Reasons returns the undecided nodes by reason.
func Reasons(all []Undecided) (out []Reason) {
	for _, u := range all {
		reason := u.Reason
		at := slices.IndexFunc(out, func(r Reason) bool { return r.Reason == reason })
		if at < 0 && len(out) >= maxReasons {
			reason = "other reasons"
			at = slices.IndexFunc(out, func(r Reason) bool { return r.Reason == reason })
		}
		if at < 0 {
			at, out = len(out), append(out, Reason{Reason: reason})
		}
		out[at].Nodes = append(out[at].Nodes, u.Node)
	}

	return out
}

// Text returns the reason with the number of its nodes among all nodes, and with their names unless they are empty.
func (r Reason) Text(all int, names string) string {
	if names != "" {
		names = ": " + names
	}
	switch count := fmt.Sprintf("%d of %d nodes", len(r.Nodes), all); r.Reason {
	case whyNoFacts:
		return count + " sent no facts" + names
	case whyNoInventory:
		return count + " sent no inventory" + names
	default:
		return "cannot tell whether " + count + " match" + names + ": " + r.Reason
	}
}

// incomplete returns the reasons why nodes are undecided.
func (s Selection) incomplete() (out []string) {
	for _, r := range Reasons(s.Undecided) {
		out = append(out, r.Text(s.Known, ""))
	}

	return out
}

// UnknownNames adds nodes to a finder and returns its warnings. It calls statuses only for the names of manifests.
func UnknownNames(unknown *Finder, nodes iter.Seq[*model.Node], statuses func(*model.Node) []fleet.RolloutStatus) []string {
	count := 0
	for n := range nodes {
		count++
		unknown.AddNode(n)
		if unknown.Needs(SpaceManifest) {
			addManifests(unknown, statuses(n))
		}
	}

	return unknown.Warnings(count)
}

// addManifests adds the names of the manifests of a node.
func addManifests(to *Finder, statuses []fleet.RolloutStatus) {
	if !to.Needs(SpaceManifest) {
		return
	}
	for _, s := range statuses {
		if _, name, ok := model.SplitKey(s.Key); ok {
			to.Add(SpaceManifest, name)
		}
	}
}

// ManifestsOf returns the manifests for an expression by name: the assignment that applies to the node,
// otherwise the first of that name.
func ManifestsOf(statuses []fleet.RolloutStatus) func(name string) Manifest {
	byName := sync.OnceValue(func() map[string]fleet.RolloutStatus {
		all := map[string]fleet.RolloutStatus{}
		for _, s := range statuses {
			_, name, err := fleet.ParseKey(s.Key)
			if other, known := all[name]; err == nil && (!known || s.Applies() && !other.Applies()) {
				all[name] = s
			}
		}

		return all
	})

	return func(name string) Manifest {
		s := byName()[name]

		return Manifest{Status: string(s.Status), Revision: s.Current, Outcome: string(s.Outcome)}
	}
}
