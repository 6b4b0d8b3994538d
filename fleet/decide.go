package fleet

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/musterfleet/muster/fleet/targets"

	"github.com/musterfleet/muster/model"
)

// The reasons of nodes without a document.
const (
	whyNoFacts     = "it has not stored its facts"
	whyNoInventory = "it has not stored an inventory"
)

// decisions are the results of an expression, by node.
type decisions struct {
	expression *targets.Expression
	run        *targets.Evaluator
	matched    map[string]bool
	// undecided has the reason of each undecided node.
	undecided map[string]string
	// open are the nodes that cannot be decided without their facts or inventory.
	open    map[string]*candidate
	unknown *targets.Finder
}

// candidate is a node with its installed packages. unreadable is the reason why they cannot be read, empty if they can.
type candidate struct {
	targets.Node
	installed  *targets.Installed
	unreadable string
}

// decide evaluates the expression for a node. A node that needs a document stays open. The error is the error of ctx.
func (d *decisions) decide(ctx context.Context, c *candidate, facts model.Facts) error {
	name := c.Node.Node.Node
	delete(d.undecided, name)
	delete(d.open, name)
	var err error
	d.matched[name], err = d.run.Match(c.Node, targets.Documents{Facts: facts, Installed: c.installed})
	switch {
	case errors.Is(err, targets.ErrEnded):
		return ctx.Err()
	case errors.Is(err, targets.ErrFactsNeeded):
		d.open[name], d.undecided[name] = c, whyNoFacts
	case errors.Is(err, targets.ErrInventoryNeeded):
		d.open[name], d.undecided[name] = c, cmp.Or(c.unreadable, whyNoInventory)
	case err != nil:
		d.undecided[name] = said(err.Error())
	}

	return nil
}

// complete decides the open nodes by their inventories, then by their facts. It reads inventories before facts, because
// only a few of their packages stay in memory.
func (s Selector) complete(ctx context.Context, d *decisions) error {
	if d.expression.UsesInventory() && s.Inventories != nil && len(d.open) > 0 {
		err := withDocuments(d, s.Inventories(ctx, d.openNames()), func(i model.Inventory) string { return i.Node }, func(c *candidate, i model.Inventory) error {
			if i.Unreadable != "" {
				c.unreadable = "its inventory cannot be read: " + said(i.Unreadable)
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
			d.undecided[f.Node] = "its facts cannot be read: " + said(f.Unreadable)
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
