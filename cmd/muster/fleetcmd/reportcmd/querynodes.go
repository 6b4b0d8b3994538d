package reportcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/query"
	"github.com/musterfleet/muster/fleet/summary"
	"github.com/musterfleet/muster/fleet/target"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore/nodes"
	"github.com/musterfleet/muster/model"
)

// nodes answers a query over nodes; without an expression, over all.
func (c *queryCommand) nodes(ctx context.Context, store *fleetcli.Store, e *target.Expression) (query.Answer, error) {
	all, entries, err := store.All(ctx)
	if err != nil {
		return query.Answer{}, err
	}
	assigned := fleet.NewAssigned(entries)
	found := fleet.Selection{Nodes: all}
	if e != nil {
		if found, err = store.SelectOf(ctx, assigned, e, all); err != nil {
			return query.Answer{}, err
		}
	}
	rows := make([]query.Node, len(found.Nodes))
	for i, n := range found.Nodes {
		statuses := assigned.Statuses(n)
		node := summary.NewNode(n, statuses, assigned)
		rows[i] = query.Node{NodeRow: view.RowOf(&node), Known: n, Statuses: statuses}
	}
	var incomplete []string
	if query.Uses(append(slices.Clone(c.shown), c.Sort), "facts") {
		if incomplete, err = addFacts(ctx, store, rows); err != nil {
			return query.Answer{}, err
		}
	}
	out := answerOf(c, rows)
	out.Warnings = append(slices.Clone(found.Warnings), c.emptyColumns(rows, all)...)
	for _, r := range fleetcli.Reasons(found.Undecided) {
		out.Incomplete = append(out.Incomplete, fmt.Sprintf("cannot tell whether %s match: %s", print.Some(r.Nodes, "the first by name"), r.Reason))
	}
	out.Incomplete = append(out.Incomplete, incomplete...)

	return out, nil
}

// emptyColumns returns warnings about columns of facts and labels that no row has.
func (c *queryCommand) emptyColumns(rows []query.Node, all []model.Node) (out []string) {
	if len(rows) == 0 {
		return nil
	}
	none := "no node has"
	if len(rows) < len(all) {
		none = "none of these nodes has"
	}
	for _, column := range c.shown {
		name, _, _ := strings.Cut(column, ".")
		if name != "facts" && name != "labels" || slices.ContainsFunc(rows, func(n query.Node) bool { return n.Value(column) != nil }) {
			continue
		}
		out = append(out, none+" "+column)
	}

	return out
}

// addFacts adds the facts of nodes, and returns of which they are missing.
func addFacts(ctx context.Context, store *fleetcli.Store, rows []query.Node) (incomplete []string, err error) {
	byName, names := map[string]*query.Node{}, make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].Node
		byName[names[i]] = &rows[i]
	}
	unreadable := map[string]bool{}
	for f, err := range nodes.New(store.KV).Facts(ctx, names) {
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
		incomplete = append(incomplete, missing("cannot read the facts", invalid))
	}
	if len(none) > 0 {
		incomplete = append(incomplete, missing("no facts are stored", none))
	}

	return incomplete, nil
}
