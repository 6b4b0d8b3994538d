package fleetcmd

import (
	"context"
	"iter"
	"slices"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// nodes queries nodes. A nil expression selects all.
func (c *queryCommand) nodes(ctx context.Context, store *Store, e *targets.Expression) (view.QueryAnswer, error) {
	all, entries, err := store.All(ctx)
	if err != nil {
		return view.QueryAnswer{}, err
	}
	unstored := store.Unstored(ctx, all).Lines()
	assigned := fleet.NewAssigned(entries)
	found := targets.Selection{Nodes: all}
	if e != nil {
		if found, err = store.SelectOf(ctx, assigned, e, all); err != nil {
			return view.QueryAnswer{}, err
		}
	}
	rows := make([]view.QueryNode, len(found.Nodes))
	for i, n := range found.Nodes {
		statuses := assigned.Statuses(n)
		node := view.NewNode(n, statuses, assigned)
		rows[i] = view.QueryNode{NodeRow: view.RowOf(&node), Known: n, Statuses: statuses}
	}
	var incomplete []string
	if view.UsesColumn(append(slices.Clone(c.shown), c.Sort), "facts") {
		if incomplete, err = addFactColumns(ctx, store, rows); err != nil {
			return view.QueryAnswer{}, err
		}
	}
	out := answerOf(c, rows)
	out.Warnings = found.Warnings
	for _, text := range c.unknownColumns(rows, all, assigned) {
		if !slices.Contains(out.Warnings, text) {
			out.Warnings = append(out.Warnings, text)
		}
	}
	for _, r := range targets.Reasons(found.Undecided) {
		out.Incomplete = append(out.Incomplete, r.Text(len(all), someOf(r.Nodes)))
	}
	out.Incomplete = append(append(out.Incomplete, incomplete...), unstored...)

	return out, nil
}

// unknownColumns returns warnings about labels, facts and manifests in columns that no node has.
func (c *queryCommand) unknownColumns(rows []view.QueryNode, all []model.Node, assigned *fleet.Assigned) []string {
	unknown := targets.NewFinder(targets.InColumns(append(slices.Clone(c.shown), c.Sort)))
	for _, n := range rows {
		if n.Facts != nil {
			unknown.AddFacts(n.Facts)
		}
	}

	return targets.UnknownNames(unknown, each(all), func(n *model.Node) []fleet.RolloutStatus { return assigned.Statuses(*n) })
}

// each iterates over the nodes.
func each(all []model.Node) iter.Seq[*model.Node] {
	return func(yield func(*model.Node) bool) {
		for i := range all {
			if !yield(&all[i]) {
				return
			}
		}
	}
}

// addFactColumns adds the facts of the nodes, and returns remarks about nodes without facts.
func addFactColumns(ctx context.Context, store *Store, rows []view.QueryNode) (incomplete []string, err error) {
	byName, names := map[string]*view.QueryNode{}, make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].Node
		byName[names[i]] = &rows[i]
	}
	unreadable := map[string]bool{}
	for f, err := range kvstore.NewNodes(store.KV).Facts(ctx, names) {
		if err != nil {
			return nil, err
		}
		if n := byName[f.Node]; n != nil {
			n.Facts = f.Facts
			unreadable[f.Node] = f.Unreadable != ""
		}
	}
	var none, invalid []string
	for _, n := range rows {
		switch {
		case unreadable[n.Node]:
			invalid = append(invalid, n.Node)
		case n.Facts == nil:
			none = append(none, n.Node)
		}
	}
	if len(invalid) > 0 {
		incomplete = append(incomplete, missing("have unreadable facts", invalid, len(rows)))
	}
	if len(none) > 0 {
		incomplete = append(incomplete, missing("sent no facts", none, len(rows)))
	}

	return incomplete, nil
}
