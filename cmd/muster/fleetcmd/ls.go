package fleetcmd

import (
	"cmp"
	"context"
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
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// lsCommand implements muster fleet ls.
type lsCommand struct {
	*cli.Env
	print.Format
	TargetFlags
	Order
	name    string
	removed bool
}

func addLs(env *cli.Env, parent *fisk.CmdClause) {
	c := &lsCommand{Env: env}
	cmd := parent.Command("ls", "List assignments")
	cmd.HelpLong("One row for each assignment, and for each invalid key.\n\n  muster fleet ls\n  muster fleet ls motd              assignments of that name\n  muster fleet ls --group web       assignments of a group\n  muster fleet ls --sort time --reverse --limit 10    the latest assignments\n  muster fleet ls --removed         removed assignments and their authors")
	cmd.Arg("name", "Filter by manifest name").HintAction(env.CompleteManifests).StringVar(&c.name)
	cmd.Flag("removed", "List removed assignments instead, while the bucket holds them").UnNegatableBoolVar(&c.removed)
	c.AddTargets(env, cmd)
	cmd.GetFlag("node").Help("Filter by node that is the target; repeatable")
	cmd.GetFlag("group").Help("Filter by group that is the target; repeatable")
	cmd.GetFlag("all").Help("Filter by assignments to all nodes")
	c.AddOrder(cmd, assignmentColumns()...)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

// assignmentColumns returns the columns for --sort.
func assignmentColumns() []string { return []string{"key", "target", "name", "revision", "time"} }

// assignmentRow adapts an assignment for sorting.
type assignmentRow struct{ model.Entry }

// Value returns the value of a column.
func (l assignmentRow) Value(column string) any {
	switch column {
	case "key":
		return l.Key
	case "target":
		family, _, _ := model.SplitKey(l.Key)
		return family
	case "name":
		return l.Name
	case "revision":
		return l.Revision
	case "time":
		return l.Time
	default:
		return nil
	}
}

// sorted applies --sort, --reverse and --limit.
func (c *lsCommand) sorted(all []model.Entry) []model.Entry {
	rows := make([]assignmentRow, len(all))
	for i, e := range all {
		rows[i].Entry = e
	}
	out := []model.Entry{}
	for _, r := range view.FirstRows(rows, c.RowOrder) {
		out = append(out, r.Entry)
	}

	return out
}

func (c *lsCommand) run(ctx context.Context) error {
	if err := c.Check(assignmentColumns()...); err != nil {
		return err
	}
	var families []string
	var list []fleet.Target
	if c.HasTargets() {
		var err error
		if list, err = c.TargetList(); err != nil {
			return err
		}
		for _, t := range list {
			families = append(families, t.String())
		}
	}
	if c.name != "" {
		if err := CheckNameOrKey(c.name); err != nil {
			return err
		}
	}
	store, err := Open(ctx, c.Env, NeedManifests)
	if err != nil {
		return err
	}
	if c.removed {
		return c.listRemoved(ctx, store, families)
	}
	entries, err := store.Named(ctx, families, c.name)
	if err != nil {
		return err
	}
	invalid, err := store.Invalid(ctx)
	if err != nil {
		return err
	}
	invalid = slices.DeleteFunc(invalid, func(e model.Entry) bool {
		within := len(families) == 0 || slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(e.Key, f+".") })
		return !within || c.name != "" && c.name != e.Key
	})
	entries = append(entries, invalid...)
	shown, none := c.sorted(entries), "no assignments"
	if c.HasTargets() || c.name != "" {
		none += " match"
	}
	if len(shown) == 0 && none != "no assignments" {
		none += c.didYouMean(ctx, store, list)
	}

	return c.Print.Result(c.Format, shown, func() {
		c.print(shown, len(invalid), none)
		c.Order.Remark(c.Print, len(shown), len(entries))
	})
}

// didYouMean suggests the nearest assigned name, key or target. It returns an empty string if there is none.
func (c *lsCommand) didYouMean(ctx context.Context, store *Store, targets []fleet.Target) string {
	all, err := store.List(ctx)
	if err != nil {
		return "" // a suggestion is not worth an error
	}
	var known, families []string
	for _, e := range all {
		families = append(families, e.Family)
		if assign.IsKey(c.name) {
			known = append(known, e.Key)
		} else {
			known = append(known, e.Name)
		}
	}
	switch {
	case c.name != "" && !slices.Contains(known, c.name):
		return cli.DidYouMean(c.name, known)
	case len(targets) == 1:
		return didYouMeanTarget(targets[0], families)
	default:
		return "" // the name exists for other targets
	}
}

// didYouMeanTarget suggests the nearest target with assignments.
func didYouMeanTarget(t fleet.Target, families []string) string {
	flag, of := "--group ", model.GroupFamily("")
	if t.Node != "" {
		flag, of = "--node ", model.NodeFamily("")
	}
	var known []string
	for _, family := range families {
		if name, is := strings.CutPrefix(family, of); is {
			known = append(known, name)
		}
	}
	name := strings.TrimPrefix(t.String(), of)
	if slices.Contains(known, name) {
		return ""
	}
	if near := document.Nearest(name, known); near != "" {
		return ", did you mean " + flag + near + "?"
	}

	return ""
}

// listRemoved lists removed assignments.
func (c *lsCommand) listRemoved(ctx context.Context, store *Store, families []string) error {
	all, err := store.Removed(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e model.Entry) bool {
		return len(families) > 0 && !slices.Contains(families, e.Family) || c.name != "" && c.name != e.Name && c.name != e.Key
	})
	for i := range all {
		all[i].Deleted = true
	}
	shown := c.sorted(all)

	return c.Print.Result(c.Format, shown, func() {
		rows := print.Rows(shown, func(e model.Entry) []string {
			return []string{e.Family, e.Name, strconv.FormatUint(e.Revision, 10), cmp.Or(print.OneLine(e.By), "-"), print.Age(e.Time, time.Now())}
		})
		c.Print.Table([]string{"TARGET", "NAME", "REVISION", "REMOVED BY", "AGE"}, rows, "no removed assignments")
		if len(shown) > 0 {
			c.Print.Remark("to see an old revision, run muster fleet history KEY")
		}
		c.Order.Remark(c.Print, len(shown), len(all))
	})
}

func (c *lsCommand) print(entries []model.Entry, invalid int, none string) {
	now, unusable := time.Now(), 0
	rows := make([][]string, len(entries))
	for i, e := range entries {
		family, name, digest := "-", e.Key, "invalid"
		if target, parsed, err := fleet.ParseKey(e.Key); err == nil && !e.Invalid {
			family, name, digest = target.String(), parsed, print.ShortDigest(e.Digest)
		}
		if e.Refused != "" {
			digest = "unusable"
			unusable++
		}
		rows[i] = []string{family, name, strconv.FormatUint(e.Revision, 10), digest, print.Age(e.Time, now), cmp.Or(print.OneLine(e.By), "-"), cmp.Or(print.OneLine(strings.Join(e.Terms.Words(now, print.Time), ", ")), "-")}
	}
	c.Print.Table([]string{"TARGET", "NAME", "REVISION", "DIGEST", "AGE", "BY", "TERMS"}, rows, none)
	if unusable > 0 {
		c.Print.Remark("%s with invalid headers: nodes do not run it; push it again, or remove it with muster fleet rm KEY", print.Count(unusable, "assignment"))
	}
	if invalid > 0 {
		c.Print.Remark("%s: keys are node.<node>.<name> or group.<group>.<name>; nodes ignore others, muster fleet rm KEY removes one", print.Count(invalid, "invalid key"))
	}
}
