package fleetcmd

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// The values of --from.
const (
	fromNodes        = "nodes"
	fromResources    = "resources"
	fromTransactions = "transactions"
	fromPackages     = "packages"
)

// queryCommand implements muster fleet query.
type queryCommand struct {
	*cli.Env
	print.Format
	TargetFlags
	Order
	csv                           bool
	expression, from, columns, by string
	since                         string
	shown                         []string
	sinceAt                       time.Time
}

// addQuery adds muster fleet query.
func addQuery(env *cli.Env, parent *fisk.CmdClause) {
	c := &queryCommand{Env: env}
	cmd := parent.Command("query", "Query nodes, resources, transactions and packages of the fleet")
	cmd.HelpLong("The expression selects rows, in the language of --on. Without an expression, all rows are shown. --from nodes reads nodes, transactions the reports of resources of the last day, resources the newest result of each resource, and packages the installed packages of nodes.\n\n" +
		"Durations and times are compared with texts: latency > \"1s\", time > \"2026-01-31\", age(heard) > \"1h\". Versions are compared with older(version, \"1.2.0\"), newer and compare. Remarks name rows that may be missing (\"incomplete\" with --json), and names that no node has (\"warnings\"). With --strict, both fail the query with exit code 2.\n\n" +
		"  muster fleet query 'state == \"failed\" && labels.rack == \"a3\"' --columns node,state,facts.host.info.platform\n" +
		"  muster fleet query --from resources 'type == \"service\" && outcome == \"failed\"'\n" +
		"  muster fleet query --from transactions 'drift && latency > \"1s\"' --since 7d --csv\n" +
		"  muster fleet query --from packages 'name == \"openssl\" && older(version, \"3.0.15\")' --columns node,version\n" +
		"  muster fleet query --by state,version")
	columns := slices.Concat(view.NodeTable().Columns, view.ResultTable().Columns, view.PackageTable().Columns)
	slices.Sort(columns)
	columns = slices.Compact(columns)
	cmd.Arg("expression", "Condition over a row").StringVar(&c.expression)
	cli.Enum(cmd.Flag("from", "Rows to query: nodes, resources, transactions or packages").Default(fromNodes).PlaceHolder("WHAT"), &c.from, fromNodes, fromResources, fromTransactions, fromPackages)
	c.AddOn(cmd)
	cmd.Flag("columns", "Columns to show, such as node,labels.rack,facts.host.info.platform").PlaceHolder("NAME,…").HintOptions(columns...).StringVar(&c.columns)
	cmd.Flag("by", "Count rows by these columns").PlaceHolder("NAME,…").HintOptions(columns...).StringVar(&c.by)
	c.AddOrder(cmd, columns...)
	cmd.Flag("since", "Start at this time, or this long ago").PlaceHolder("TIME|DURATION").StringVar(&c.since)
	cmd.Flag("csv", "Print as CSV").UnNegatableBoolVar(&c.csv)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

// table returns the columns of the rows.
func (c *queryCommand) table() view.QueryTable {
	switch c.from {
	case fromNodes:
		return view.NodeTable()
	case fromPackages:
		return view.PackageTable()
	default:
		return view.ResultTable()
	}
}

func (c *queryCommand) run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	on, err := c.CompileOn(c.Env)
	if err != nil {
		return err
	}
	ask, err := c.compile(on)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	store, err := Open(ctx, c.Env, NeedNodes)
	if err != nil {
		return err
	}
	answer, err := ask(ctx, store)
	if err != nil {
		return err
	}
	if c.Strict {
		if err := StrictError(slices.Concat(answer.Warnings, answer.Incomplete)); err != nil {
			return err
		}
	}
	if !c.IsDocument() {
		for _, text := range answer.Warnings {
			c.Print.Remark("warning: %s", text)
		}
		for _, text := range answer.Incomplete {
			c.Print.Remark("incomplete: %s", text)
		}
	}
	if c.csv {
		return c.printCSV(answer)
	}

	return c.Print.Result(c.Format, answer, func() { c.printTable(answer) })
}

// compile compiles the expression, and returns the function that runs the query.
func (c *queryCommand) compile(on *targets.Expression) (func(context.Context, *Store) (view.QueryAnswer, error), error) {
	text := cmp.Or(c.expression, "true")
	switch c.from {
	case fromNodes:
		if on != nil {
			return nil, fmt.Errorf("--on needs --from %s or %s; for nodes use the expression itself", fromResources, fromTransactions)
		}
		if c.expression == "" {
			return func(ctx context.Context, s *Store) (view.QueryAnswer, error) { return c.nodes(ctx, s, nil) }, nil
		}
		e, err := targets.Compile(text)
		if err == nil {
			e.Strict = c.Strict
		}
		return func(ctx context.Context, s *Store) (view.QueryAnswer, error) { return c.nodes(ctx, s, e) }, err
	case fromPackages:
		e, err := targets.CompilePackages(text)
		return func(ctx context.Context, s *Store) (view.QueryAnswer, error) { return c.packages(ctx, s, e, on) }, err
	default:
		e, err := targets.CompileResults(text)
		return func(ctx context.Context, s *Store) (view.QueryAnswer, error) { return c.results(ctx, s, e, on) }, err
	}
}

// check validates the flags.
func (c *queryCommand) check() error {
	table := c.table()
	c.shown = table.Default
	switch {
	case c.columns != "" && c.by != "":
		return cli.Usagef("--by and --columns exclude each other: --by shows its columns and %s", view.ColumnCount)
	case c.columns != "":
		c.shown = splitList(c.columns)
	case c.by != "":
		c.shown = splitList(c.by)
	}
	if c.csv && c.IsDocument() {
		return cli.Usagef("--csv, --json and --yaml exclude each other")
	}
	if err := table.CheckColumns(c.shown); err != nil {
		return cli.Usagef("--%s: %w", map[bool]string{true: "by", false: "columns"}[c.by != ""], err)
	}
	sorted := []string{c.Sort}
	switch {
	case c.Sort == "", c.by != "" && c.Sort == view.ColumnCount:
	case c.by != "" && !slices.Contains(c.shown, c.Sort):
		return cli.Usagef("--sort %s: with --by it is %s or %s", c.Sort, strings.Join(c.shown, ", "), view.ColumnCount)
	default:
		if err := table.CheckColumns(sorted); err != nil {
			return cli.Usagef("--sort: %w", err)
		}
	}
	if err := c.Check(); err != nil {
		return err
	}
	if c.from == fromNodes || c.from == fromPackages {
		if c.since != "" {
			return cli.Usagef("--since needs --from %s or %s; --from %s shows the current state, filter it with age(heard) < \"1h\"", fromResources, fromTransactions, c.from)
		}
		return nil
	}

	c.sinceAt = time.Now().Add(-24 * time.Hour)
	if c.from == fromResources {
		c.sinceAt = view.ResultsSince(time.Now())
	}

	return parseBefore("since", c.since, &c.sinceAt)
}

// splitList splits a comma-separated list.
func splitList(list string) []string {
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		out = append(out, strings.TrimSpace(name))
	}

	return out
}

func (c *queryCommand) printCSV(a view.QueryAnswer) error {
	rows := make([][]model.CSVCell, len(a.Rows))
	for i, r := range a.Rows {
		for _, v := range r.All {
			rows[i] = append(rows[i], model.CSVCell{Text: view.ValueCSV(v), Chosen: view.IsTextValue(v)})
		}
	}

	return model.WriteCSV(c.Print.Out, a.Columns, rows)
}

func (c *queryCommand) printTable(a view.QueryAnswer) {
	header := make([]string, len(a.Columns))
	for i, name := range a.Columns {
		header[i] = strings.ToUpper(name)
	}
	rows := make([][]string, len(a.Rows))
	for i, r := range a.Rows {
		for _, v := range r.All {
			rows[i] = append(rows[i], print.OneLine(view.ValueText(v)))
		}
	}
	c.Print.Table(header, rows, "nothing matches")
	c.Order.Remark(c.Print, len(a.Rows), a.Matching)
}

// answerOf returns the rows to show: selected columns, or counts with --by.
func answerOf[R view.QueryRow](c *queryCommand, rows []R) view.QueryAnswer {
	if c.by != "" {
		return view.CountRows(rows, c.shown, c.RowOrder)
	}

	return view.SelectRows(rows, c.shown, c.RowOrder)
}

// missing returns a remark about nodes with a problem, such as "sent no facts". all is the number of nodes.
func missing(what string, nodes []string, all int) string {
	return fmt.Sprintf("%d of %s %s: %s", len(nodes), print.Count(all, "node"), what, someOf(nodes))
}

// someOf returns the first nodes in alphabetical order.
func someOf(nodes []string) string {
	return print.Some(slices.Sorted(slices.Values(nodes)), "the first by name")
}

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
	rows := view.QueryNodes(found.Nodes, assigned)
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

// packages evaluates an expression over the packages of the nodes that on selects.
func (c *queryCommand) packages(ctx context.Context, store *Store, e targets.Query[targets.Package], on *targets.Expression) (view.QueryAnswer, error) {
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

// results queries the results of resources.
func (c *queryCommand) results(ctx context.Context, store *Store, e targets.Query[targets.Result], on *targets.Expression) (view.QueryAnswer, error) {
	q := view.ResultQuery{Run: e.Evaluator(ctx.Done()), Since: c.sinceAt, OnlyCurrent: c.from == fromResources, Unknown: targets.NewFinder(e.Mentions())}
	var incomplete []string
	if on != nil {
		found, err := find(ctx, store, on, nil)
		if err != nil {
			return view.QueryAnswer{}, err
		}
		if found.undecided != nil {
			incomplete = append(incomplete, found.undecided.Error())
		}
		q.Nodes = found.names()
	}
	reports := kvstore.NewReports(store.KV)
	bounds, err := reports.Bounds(ctx)
	if err != nil {
		return view.QueryAnswer{}, err
	}
	m, err := view.MatchResults(ctx, q, reportSource{reports, store})
	if err != nil {
		return view.QueryAnswer{}, err
	}
	warnings, err := c.unknownInResults(ctx, store, q.Unknown)
	if err != nil {
		return view.QueryAnswer{}, err
	}
	out := answerOf(c, m.Rows)
	out.Warnings = append(e.Warnings(), warnings...)
	out.Incomplete = append(append(out.Incomplete, incomplete...), incompleteResults(m, bounds, c.sinceAt)...)

	return out, nil
}

// reportSource has the reports and the nodes of a fleet.
type reportSource struct {
	kvstore.Reports
	store *Store
}

// Nodes returns all nodes.
func (s reportSource) Nodes(ctx context.Context) ([]model.Node, error) { return s.store.Nodes(ctx) }

// unknownInResults returns warnings about names in the expression that do not exist in reports, the fleet or muster.
func (c *queryCommand) unknownInResults(ctx context.Context, store *Store, unknown *targets.Finder) ([]string, error) {
	unknown.AddKey(model.KindEnsure) // the manifest of ensure requests
	for _, t := range c.Types {
		unknown.Add(targets.SpaceType, t.Name)
		for _, provider := range t.Providers {
			unknown.Add(targets.SpaceProvider, provider)
		}
	}
	if !slices.ContainsFunc([]targets.Space{targets.SpaceType, targets.SpaceProvider, targets.SpaceNode, targets.SpaceKey}, unknown.Needs) {
		return nil, nil
	}
	all, entries, err := store.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		unknown.AddKey(e.Key)
	}

	return targets.UnknownNames(unknown, each(all), nil), nil
}

// incompleteResults returns the reasons why results may be missing.
func incompleteResults(m *view.ResultMatches, b model.ReportBounds, since time.Time) []string {
	var out []string
	if b.Dropped && b.Oldest.After(since) {
		out = append(out, "reports from before "+print.Time(b.Oldest)+" are no longer stored")
	}
	out = append(out, missingReports(&m.Shares, b)...)
	if m.Invalid > 0 {
		out = append(out, print.Count(m.Invalid, "message")+" with reports that cannot be read")
	}
	if len(m.Undecided) > 0 {
		out = append(out, "cannot tell whether results of "+print.Count(len(m.Undecided), "node")+" match: "+someOf(slices.Collect(maps.Keys(m.Undecided))))
	}
	if len(m.Cut) > 0 {
		out = append(out, fmt.Sprintf("only %d resources, and not all manifests, are shown of %s: %s", view.MaxResources, print.Count(len(m.Cut), "node"), someOf(m.Cut)))
	}
	if m.Full {
		out = append(out, fmt.Sprintf("more than %d match: the oldest of them are shown; select fewer", view.MaxResults))
	}

	return out
}
