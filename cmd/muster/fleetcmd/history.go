package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// historyCommand implements muster fleet history.
type historyCommand struct {
	*cli.Env
	print.Format
	name, node, manifest string
	since, until, by     string
	limit                int
	groups, events       []string
	all                  bool
	from, to             time.Time
}

// addHistory adds muster fleet history.
func addHistory(env *cli.Env, parent *fisk.CmdClause) {
	c := &historyCommand{Env: env}
	cmd := parent.Command("history", "Show what happened to a node, a manifest, or the whole fleet")
	cmd.HelpLong("Without a name: assignments, removals, pauses, resumes and labels of the whole fleet, with their authors. For a node: its assignments, its runs with outcome and cause, repaired drift, pauses, labels, groups. For a manifest: its revisions, removals and rollbacks, and how many nodes ran each. The newest is last. Warns if older entries are no longer stored.\n\n" +
		"  muster fleet history --since 1d                who changed what in the fleet\n" +
		"  muster fleet history --event assigned          pushes and their targets\n" +
		"  muster fleet history --group web               who assigned what to a group, and paused it\n" +
		"  muster fleet history node.web01.pause          who paused and resumed it\n" +
		"  muster fleet history web01\n" +
		"  muster fleet history web01 --since 2d --limit 20\n" +
		"  muster fleet history --since yesterday --until today --by anna\n" +
		"  muster fleet history motd\n" +
		"  muster fleet history group.web.motd --json\n" +
		"  muster fleet history --node motd               a node with the same name as a manifest")
	cmd.Arg("name", "A node, a manifest by its name or key, or the key of a pause, labels or groups").HintAction(env.CompleteNodesAndAssignments).StringVar(&c.name)
	cli.NodeVar(cmd.Flag("node", "Show the history of this node").PlaceHolder("NODE").HintAction(env.CompleteNodes), &c.node)
	cmd.Flag("manifest", "Show the history of this manifest (name or key)").PlaceHolder("NAME").HintAction(env.CompleteAssignments).StringVar(&c.manifest)
	cmd.Flag("group", "Filter by a group: its assignments and pauses; repeatable").PlaceHolder("GROUP").HintAction(env.CompleteGroups).StringsVar(&c.groups)
	cmd.Flag("event", "Filter the history of the fleet or of groups by EVENT, such as assigned; repeatable").PlaceHolder("EVENT").HintOptions(events()...).StringsVar(&c.events)
	cmd.Flag("all", "Show the history of the whole fleet (default)").UnNegatableBoolVar(&c.all)
	cmd.Flag("since", "Start at this time, or this long ago").PlaceHolder("TIME|DURATION").StringVar(&c.since)
	cmd.Flag("until", "End before this time, or this long ago").PlaceHolder("TIME|DURATION").StringVar(&c.until)
	cmd.Flag("by", "Only changes by this user, such as anna or anna@desk").PlaceHolder("USER").StringVar(&c.by)
	cli.Int(cmd.Flag("limit", "Show the last N entries; 0 shows all").Default("100").PlaceHolder("N"), &c.limit)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

// check validates the arguments and parses the times.
func (c *historyCommand) check(now time.Time) error {
	given := 0
	for _, one := range []struct {
		flag, name string
	}{{"", c.name}, {"node", c.node}, {"manifest", c.manifest}} {
		if one.name != "" || one.flag != "" && c.Given(one.flag) {
			given++
		}
	}
	switch {
	case given > 1 || given == 1 && (c.all || len(c.groups) > 0) || c.all && len(c.groups) > 0:
		return cli.Usagef("name one node or manifest: NAME, --node NODE or --manifest NAME; or groups with --group; or nothing, for the whole fleet")
	case c.limit < 0:
		return cli.Usagef("--limit must be 0 or more")
	}
	if c.since != "" {
		at, err := ParseTime(c.since, now, -1)
		if err != nil {
			return cli.Usagef("--since %w", err)
		}
		c.from = at
	}
	if c.until != "" {
		at, err := ParseTime(c.until, now, -1)
		if err != nil {
			return cli.Usagef("--until %w", err)
		}
		c.to = at
	}
	if !c.to.IsZero() && !c.to.After(c.from) {
		return cli.Usagef("--until must be later than --since")
	}
	if given == 0 {
		return errors.Join(c.checkGroups(), c.checkEvents())
	}
	if len(c.events) > 0 {
		return cli.Usagef("--event applies to the fleet or to groups; remove --event or the name")
	}
	if c.Given("node") {
		if err := model.CheckNode(c.node, nil); err != nil {
			return cli.Usagef("--node: %w", err)
		}
		return nil
	}
	if IsKey(c.name) {
		c.name, c.manifest = "", c.name
	}
	if c.name != "" {
		if err := model.CheckNode(c.name, nil); err != nil {
			return cli.Usagef("%w", err)
		}
		return nil
	}

	return CheckNameOrKey(c.manifest)
}

// selectEvents returns the entries that match --until and --by. It changes all.
func selectEvents[T any](c *historyCommand, all []T, at func(T) time.Time, by func(T) string) []T {
	return slices.DeleteFunc(all, func(one T) bool {
		return !c.to.IsZero() && !at(one).Before(c.to) || c.by != "" && !view.IsBy(by(one), c.by)
	})
}

// checkGroups validates --group.
func (c *historyCommand) checkGroups() error {
	for _, group := range c.groups {
		if err := model.CheckFamily(model.GroupFamily(group)); err != nil {
			return cli.Usagef("--group: %w", err)
		}
	}

	return nil
}

// checkEvents validates --event.
func (c *historyCommand) checkEvents() error {
	for _, event := range c.events {
		if all := events(); !slices.Contains(all, event) {
			return cli.Usagef("--event: not one of %s%s", strings.Join(all, ", "), cli.DidYouMean(event, all))
		}
	}

	return nil
}

func (c *historyCommand) run(ctx context.Context) error {
	if err := c.check(time.Now()); err != nil {
		return err
	}
	store, err := Open(ctx, c.Env, NeedManifests, NeedReports)
	if err != nil {
		return err
	}
	if c.name != "" {
		if err := c.choose(ctx, store); err != nil {
			return err
		}
	}
	if c.name == "" && c.node == "" && c.manifest == "" {
		return c.ofFleet(ctx, store)
	}
	if c.manifest != "" {
		return c.ofManifest(ctx, store)
	}

	return c.ofNode(ctx, store)
}

// choose decides whether the name is a node or a manifest.
func (c *historyCommand) choose(ctx context.Context, store *Store) error {
	isNode := true
	_, err := kvstore.NewNodes(store.KV).State(ctx, c.name)
	switch {
	case errors.Is(err, model.ErrNotFound):
		isNode = false
	case err != nil && !errors.Is(err, kvstore.ErrInvalidState):
		return err
	}
	keys, err := store.KeysOf(ctx, c.name)
	if err != nil {
		return err
	}
	switch {
	case isNode && len(keys) > 0:
		return fmt.Errorf("%s is ambiguous, a node and a manifest: give --node %s or --manifest %s", c.name, c.name, strings.Join(keys, " or --manifest "))
	case isNode:
		c.node = c.name
	case len(keys) > 0:
		c.manifest = c.name
	default:
		return c.chooseUnknown(ctx, store)
	}

	return nil
}

// chooseUnknown handles a name that is neither a known node nor a manifest: a forgotten node may still have
// reports.
func (c *historyCommand) chooseUnknown(ctx context.Context, store *Store) error {
	left, err := kvstore.NewReports(store.KV).Newest(ctx, c.name)
	if len(left) > 0 {
		c.node = c.name
		return nil
	}
	if err != nil && !errors.Is(err, kvstore.ErrInvalidEvent) {
		return err
	}
	all, err := store.Nodes(ctx)
	if err != nil {
		return err
	}
	assigned, err := store.List(ctx)
	if err != nil {
		return err
	}
	var known []string
	isGroup := false
	for _, n := range all {
		known = append(known, n.Node)
		isGroup = isGroup || slices.Contains(n.Groups, c.name)
	}
	for _, e := range assigned {
		known = append(known, e.Name)
		isGroup = isGroup || e.Family == model.GroupFamily(c.name)
	}
	if isGroup {
		return fmt.Errorf("%s is a group: write --group %s", c.name, c.name)
	}

	return fmt.Errorf("no such node or manifest: %s%s (see muster fleet nodes, muster fleet ls)", c.name, cli.DidYouMean(c.name, known))
}

// remarks prints what the output lacks.
func (c *historyCommand) remarks(more int, incomplete []string) {
	if more > 0 {
		c.Print.Remark("%d earlier entries not shown; --limit 0 shows all", more)
	}
	for _, what := range incomplete {
		c.Print.Remark("incomplete: %s", print.Text(what))
	}
}
