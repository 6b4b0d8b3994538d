package fleetcmd

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
)

// runPackages queries installed packages.
func (c *queryCommand) runPackages(ctx context.Context) error {
	text := c.expression
	if text == "" {
		text = "true"
	}
	e, err := targets.CompilePackages(text)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	on, err := c.CompileOn(c.Env)
	if err != nil {
		return err
	}

	return c.withStore(ctx, func(store *Store) (view.QueryAnswer, error) { return c.packages(ctx, store, e, on) })
}

// packages evaluates an expression over the packages of the nodes that on selects.
func (c *queryCommand) packages(ctx context.Context, store *Store, e targets.Packages, on *targets.Expression) (view.QueryAnswer, error) {
	all, err := store.Nodes(ctx)
	if err != nil {
		return view.QueryAnswer{}, err
	}
	found := targets.Selection{Nodes: all}
	if on != nil {
		if found, err = store.Select(ctx, on, all); err == nil {
			err = NoMatch(on, found)
		}
		if err != nil {
			return view.QueryAnswer{}, err
		}
	}
	names := slices.Sorted(maps.Keys(found.Names()))
	unknown := targets.NewFinder(e.Mentions())
	m, err := view.MatchPackages(e.Evaluator(ctx.Done()), unknown, names, kvstore.NewNodes(store.KV).Inventories(ctx, names))
	if err != nil {
		return view.QueryAnswer{}, err
	}
	out := answerOf(c, m.Rows)
	out.Warnings = append(e.Warnings(), targets.UnknownNames(unknown, each(all), nil)...)
	if err := UndecidedError(found); err != nil {
		out.Incomplete = append(out.Incomplete, err.Error())
	}
	for problem, of := range map[string][]string{"sent no inventory": m.Unstored, "have an unreadable inventory": m.Unreadable, "have packages that cannot be evaluated": m.Undecided} {
		if len(of) > 0 {
			out.Incomplete = append(out.Incomplete, missing(problem, of, len(found.Nodes)))
		}
	}
	for _, node := range slices.Sorted(maps.Keys(m.Partial)) {
		out.Incomplete = append(out.Incomplete, fmt.Sprintf("%s: the inventory is incomplete: %s", node, m.Partial[node]))
	}
	slices.Sort(out.Incomplete)
	if m.Full {
		out.Incomplete = append(out.Incomplete, fmt.Sprintf("more than %d match: narrow the expression", view.MaxPackages))
	}

	return out, nil
}
