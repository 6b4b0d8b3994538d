package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
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
func (c *historyCommand) check() error {
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
	if err := cmp.Or(parseBefore("since", c.since, &c.from), parseBefore("until", c.until, &c.to)); err != nil {
		return err
	}
	if !c.to.IsZero() && !c.to.After(c.from) {
		return cli.Usagef("--until must be later than --since")
	}
	if given == 0 {
		return c.checkFilters()
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
	if assign.IsKey(c.name) {
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

// checkFilters validates --group and --event.
func (c *historyCommand) checkFilters() error {
	for _, group := range c.groups {
		if err := model.CheckFamily(model.GroupFamily(group)); err != nil {
			return cli.Usagef("--group: %w", err)
		}
	}
	for _, event := range c.events {
		if all := events(); !slices.Contains(all, event) {
			return cli.Usagef("--event: not one of %s%s", strings.Join(all, ", "), cli.DidYouMean(event, all))
		}
	}

	return nil
}

func (c *historyCommand) run(ctx context.Context) error {
	if err := c.check(); err != nil {
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

// maxChanges is the maximum number of recent changes read from each bucket.
const maxChanges = 50_000

// ofFleetDocument is the JSON document of the fleet's history.
type ofFleetDocument struct {
	Changes []view.ControlChange `json:"changes"`
	// More: there are earlier changes.
	More       bool     `json:"more,omitempty"`
	Incomplete []string `json:"incomplete,omitempty"`

	// isLimited: a larger limit shows more changes.
	isLimited bool
	// isShared: the limit is divided fairly among nodes and groups, so these are not simply the last changes.
	isShared bool
}

// ofFleet shows the newest changes of all assignments, pauses, labels and groups, like the audit page of the
// dashboard.
func (c *historyCommand) ofFleet(ctx context.Context, store *Store) error {
	// Without --limit every changed node and group is shown: many changes of one of them do not displace the
	// others.
	isShared := !c.Given("limit") && len(c.groups) == 0
	read, most := kvstore.NewAssignments(store.KV).Audit, maxChanges
	isLimit := !isShared && c.readsUpToLimit()
	if isLimit {
		read, most = kvstore.NewAssignments(store.KV).Latest, c.limit
	}
	assigned, moreAssigned, err := read(ctx, most)
	if err != nil {
		return err
	}
	written, moreWritten, err := kvstore.NewControl(store.KV).Changes(ctx, maxChanges)
	if err != nil && !errors.Is(err, model.ErrNotProvisioned) {
		return err
	}
	changes := view.MergeChanges(view.AssignmentChanges(assigned, ""), view.ControlChanges(written, ""))
	if err := c.warnUnknown(ctx, store, changes); err != nil {
		return err
	}
	all, before := c.newest(selectEvents(c, slices.DeleteFunc(changes, func(change view.ControlChange) bool { return !c.selects(change) }), timeOf, authorOf), isShared)
	doc := ofFleetDocument{Changes: all, isLimited: before > 0, isShared: isShared}
	for _, read := range []struct {
		what    string
		entries []model.Entry
		more    bool
		// isLimit: the command reads only --limit entries.
		isLimit bool
	}{{"assignments", assigned, moreAssigned, isLimit}, {"pauses, labels and groups", written, moreWritten, false}} {
		count := len(read.entries)
		if !read.more || count == 0 || !read.entries[count-1].Time.After(c.from) {
			continue
		}
		doc.More = true
		switch {
		case read.isLimit:
			doc.isLimited = true
		case c.limit == 0 || len(all) < c.limit:
			doc.Incomplete = append(doc.Incomplete, onlyLast(read.what, count))
		}
	}
	doc.More = doc.More || doc.isLimited

	return c.showChanges(doc)
}

// newest returns the changes to show, newest last, and the number of hidden changes. If isShared is true, it
// divides the limit among nodes and groups.
func (c *historyCommand) newest(changes []view.ControlChange, isShared bool) (shown []view.ControlChange, more int) {
	if !isShared {
		return assign.Since(changes, timeOf, c.from, c.limit)
	}
	all, _ := assign.Since(changes, timeOf, c.from, 0)
	slices.Reverse(all)
	shown = kvstore.ShareByFamily(all, c.limit, func(change view.ControlChange) string {
		family, _, _ := model.SplitKey(change.Key)
		return family
	})
	more = len(all) - len(shown)
	slices.Reverse(shown)

	return shown, more
}

// readsUpToLimit reports whether the newest --limit assignments are enough, because no filter drops any of them.
func (c *historyCommand) readsUpToLimit() bool {
	return c.limit > 0 && c.limit < maxChanges && len(c.groups)+len(c.events) == 0 && c.by == "" && c.to.IsZero()
}

// onlyLast returns the remark that a bucket has more changes than the command reads.
func onlyLast(what string, read int) string {
	return fmt.Sprintf("only the last %[2]d changes of %[1]s are searched; there are more", what, read)
}

// selects reports whether a change is of a group of --group and has an event of --event.
func (c *historyCommand) selects(change view.ControlChange) bool {
	family, _, _ := model.SplitKey(change.Key)
	isOfGroup := func(group string) bool { return family == model.GroupFamily(group) }

	return (len(c.groups) == 0 || slices.ContainsFunc(c.groups, isOfGroup)) && (len(c.events) == 0 || slices.Contains(c.events, eventOf(change)))
}

// warnUnknown warns of groups without changes and without nodes.
func (c *historyCommand) warnUnknown(ctx context.Context, store *Store, changes []view.ControlChange) error {
	hasChanges := func(t fleet.Target) bool {
		return slices.ContainsFunc(changes, func(change view.ControlChange) bool {
			family, _, _ := model.SplitKey(change.Key)
			return family == t.String()
		})
	}
	unknown := slices.DeleteFunc(fleet.Targets(nil, c.groups, false), hasChanges)
	if len(unknown) == 0 {
		return nil
	}
	nodes, err := store.Nodes(ctx)
	if err == nil {
		WarnUnknown(c.Log, unknown, nodes)
	}

	return err
}

// authorOf returns the author of a change.
func authorOf(c view.ControlChange) string { return c.By }

// events returns the values of the column EVENT.
func events() []string {
	var out []string
	for _, kind := range []view.ChangeKind{view.ChangeAssigned, view.ChangeRemoved, view.ChangePaused, view.ChangeResumed, view.ChangeWritten, view.ChangeRefused} {
		out = append(out, eventOf(view.ControlChange{Kind: kind}))
	}

	return out
}

// eventOf returns the value of the column EVENT for a change.
func eventOf(c view.ControlChange) string {
	if c.Kind == view.ChangeRefused {
		return string(fleet.StatusRejected)
	}

	return string(c.Kind)
}

// ofControl shows the history of a pause, labels or groups key. found reports whether the key has a history.
func (c *historyCommand) ofControl(ctx context.Context, store *Store) (found bool, err error) {
	family, _, _ := model.SplitKey(c.manifest)
	written, err := kvstore.NewControl(store.KV).History(ctx, family)
	written = slices.DeleteFunc(written, func(e model.Entry) bool { return e.Key != c.manifest })
	if err != nil || len(written) == 0 {
		return false, err
	}
	all, before := assign.Since(selectEvents(c, view.ControlChanges(written, ""), timeOf, authorOf), timeOf, c.from, c.limit)

	return true, c.showChanges(ofFleetDocument{Changes: all, More: before > 0, isLimited: before > 0, Incomplete: full(map[string]int{c.manifest: len(written)})})
}

func timeOf(c view.ControlChange) time.Time { return c.Time }

// showChanges prints changes.
func (c *historyCommand) showChanges(doc ofFleetDocument) error {
	doc.Changes = append([]view.ControlChange{}, doc.Changes...)

	return c.Print.Result(c.Format, doc, func() {
		c.Print.Table([]string{"TIME", "KEY", "REVISION", "EVENT", "BY", "DETAILS"}, print.Rows(doc.Changes, changeRow), c.none())
		switch {
		case doc.isLimited && doc.isShared:
			c.Print.Remark("more changes exist; --limit 0 shows all")
		case doc.isLimited:
			c.Print.Remark("earlier changes exist; --limit 0 shows all")
		}
		c.remarks(0, doc.Incomplete)
	})
}

// changeRow formats a change as a table row.
func changeRow(c view.ControlChange) []string {
	return []string{print.Time(c.Time), c.Key, strconv.FormatUint(c.Revision, 10), eventOf(c), cmp.Or(print.OneLine(c.By), "-"), print.OneLine(changeDetails(c))}
}

// changeDetails returns the details that the other columns do not show.
func changeDetails(c view.ControlChange) string {
	switch c.Kind {
	case view.ChangeResumed:
		return strings.TrimPrefix(c.Text, string(c.Kind))
	case view.ChangePaused:
		// The text of a pause repeats the author.
		when, why, hasReason := strings.Cut(strings.TrimPrefix(c.Text, string(c.Kind)), ": ")
		if when = strings.TrimSpace(strings.TrimSuffix(when, " by "+c.By)); hasReason && when != "" {
			when += ": "
		}
		return when + why
	default:
		return c.Text
	}
}

// none returns the remark for no changes: it does not claim that nothing changed, because a filter may have a typo.
func (c *historyCommand) none() string {
	if len(c.groups)+len(c.events) > 0 || c.by != "" || !c.from.IsZero() || !c.to.IsZero() {
		return "no changes match"
	}

	return "no changes made"
}
