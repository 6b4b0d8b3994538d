package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// nodesCommand implements muster fleet nodes.
type nodesCommand struct {
	*cli.Env
	print.Format
	TargetFlags
	Order
	exitCode bool
}

// nodeStatus is a node with the status of its assignments.
type nodeStatus struct {
	model.Node
	// State is the state of the node, as in target expressions.
	State    fleet.Status      `json:"state"`
	Statuses []view.Assignment `json:"statuses"`
	// Flooding describes which reports the node publishes faster than they are retained.
	Flooding string `json:"flooding,omitempty"`
}

// addNodes adds muster fleet nodes.
func addNodes(env *cli.Env, parent *fisk.CmdClause) {
	c := &nodesCommand{Env: env}
	cmd := parent.Command("nodes", "Show nodes and the status of their manifests")
	cmd.HelpLong("One row for each manifest of a node; --limit counts nodes. OUTBOX counts unpublished reports. LATE FOR is the time since the missing revision was assigned. STATUS is the outcome of the last run (see muster fleet reports --help), or why the revision does not run: pending, rejected, unreachable, unreadable, stopped, unassigned.\n\n  muster fleet nodes\n  muster fleet nodes --group web\n  muster fleet nodes --on 'group(\"web\") && state != \"ok\"'\n  muster fleet nodes --on 'state == \"failed\"' --exit-code\n  muster fleet nodes --sort heard --limit 20\n  muster fleet nodes web01 --json")
	cli.NodesVar(cmd.Arg("node", "Nodes to show").HintAction(env.CompleteNodes), &c.nodes)
	c.AddFilter(env, cmd, "Node to show; repeatable", "Filter by group; repeatable")
	c.AddOrder(cmd, nodeColumns()...)
	cmd.Flag("exit-code", "Exit with code 1 if a node matches or cannot be evaluated").UnNegatableBoolVar(&c.exitCode)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

// nodeColumns returns the columns for --sort, as in muster fleet query.
func nodeColumns() []string {
	return []string{"node", "host", "version", "state", "since", "heard", "started", "outbox", "clock"}
}

func (c *nodesCommand) run(ctx context.Context) error {
	if err := c.Check(nodeColumns()...); err != nil {
		return err
	}
	on, err := c.CompileOn(c.Env)
	if err != nil {
		return err
	}
	store, err := Open(ctx, c.Env, NeedNodes, NeedManifests)
	if err != nil {
		return err
	}
	all, entries, err := store.All(ctx)
	if err != nil {
		return err
	}
	assigned := fleet.NewAssigned(entries)
	flooding, err := c.flooding(ctx, store, all, assigned)
	if err != nil {
		return err
	}
	for _, text := range store.Unstored(ctx, all).Lines() {
		c.Print.Remark("incomplete: %s", text)
	}
	found, none, err := c.selected(ctx, store, on, withUnknown(all, flooding), len(all))
	if err != nil {
		return err
	}
	matching := len(found.Nodes)
	shown := view.FirstRows(view.QueryNodes(found.Nodes, assigned), c.RowOrder)
	statuses := make([][]fleet.RolloutStatus, len(shown))
	for i, r := range shown {
		statuses[i] = r.Statuses
	}
	if err := fleet.ExplainSkipped(ctx, store.Get, statuses...); err != nil {
		return err
	}
	list := make([]nodeStatus, len(shown))
	for i, r := range shown {
		list[i] = newNodeStatus(r, assigned)
		list[i].Flooding = flooding[r.Known.Node]
	}
	if c.IsDocument() && len(list) == 0 {
		c.Print.Remark("%s", none)
	}
	err = c.Print.Result(c.Format, list, func() {
		var rows [][]string
		now := time.Now()
		for _, n := range list {
			rows = append(rows, nodeRows(c.Print, n, now)...)
		}
		c.Print.Table([]string{"NODE", "VERSION", "UPTIME", "LAST SEEN", "OUTBOX", "GROUPS", "MANIFEST", "REVISION", "STATUS", "LATE FOR", "REASON"}, rows, none)
		c.Order.Remark(c.Print, len(list), matching)
	})
	if err == nil && c.exitCode && matching+len(found.Undecided) > 0 {
		err = &cli.ExitError{Code: cli.ExitFailed}
	}

	return err
}

// newNodeStatus returns the status of the node of a row.
func newNodeStatus(r view.QueryNode, assigned *fleet.Assigned) nodeStatus {
	node := view.NewNode(r.Known, r.Statuses, assigned)

	return nodeStatus{Node: r.Known, State: node.State, Statuses: node.Statuses}
}

// flooding returns the nodes that flood a stream, each with a description. It leaves out streams that the user may not read.
func (c *nodesCommand) flooding(ctx context.Context, store *Store, known []model.Node, assigned *fleet.Assigned) (map[string]string, error) {
	all := map[string]string{}
	inReports := func(ctx context.Context) (map[string]string, error) {
		return kvstore.NewReports(store.KV).Flooding(ctx, func(node string) (count int) {
			if i := slices.IndexFunc(known, func(n model.Node) bool { return n.Node == node }); i >= 0 {
				for _, s := range assigned.Statuses(known[i]) {
					if s.Status != fleet.StatusUnassigned {
						count++
					}
				}
			}
			return count
		})
	}
	for _, find := range []func(context.Context) (map[string]string, error){kvstore.NewRegistrations(store.KV).Flooding, inReports} {
		found, err := find(ctx)
		switch {
		case errors.Is(err, model.ErrNotPermitted):
			c.Log.Debug("nodes that flood are not shown", "error", err)
		case err != nil:
			return nil, err
		}
		maps.Copy(all, found)
	}

	return all, nil
}

// withUnknown adds flooding nodes without a state.
func withUnknown(all []model.Node, flooding map[string]string) []model.Node {
	for _, name := range slices.Sorted(maps.Keys(flooding)) {
		if !slices.ContainsFunc(all, func(n model.Node) bool { return n.Node == name }) {
			all = append(all, model.Node{NodeState: model.NodeState{Node: name, Groups: []string{}}})
		}
	}

	return all
}

// selected returns the nodes that the expression or the flags select, and the text for an empty list. all
// holds the known nodes first, then nodes without a state.
func (c *nodesCommand) selected(ctx context.Context, store *Store, on *targets.Expression, all []model.Node, known int) (found targets.Selection, none string, err error) {
	if on == nil {
		none = c.none(all)
		found.Nodes, err = c.filter(all)
		return found, none, err
	}
	for i := known; i < len(all); i++ {
		all[i].Unreadable = "the node has not stored it"
	}
	if found, err = store.Select(ctx, on, all); err != nil {
		return found, "", err
	}
	if err := NoMatch(on, found); err != nil {
		none = err.Error()
	}

	return found, none, nil
}

// filter returns the nodes that the flags select. An unknown node is an error.
func (c *nodesCommand) filter(all []model.Node) ([]model.Node, error) {
	for _, name := range c.nodes {
		if !slices.ContainsFunc(all, func(n model.Node) bool { return n.Node == name }) {
			return nil, NoSuchNode(name, all)
		}
	}
	targets := fleet.Targets(c.nodes, c.groups, false)
	if len(targets) == 0 || c.all {
		return all, nil
	}

	return slices.DeleteFunc(all, func(n model.Node) bool {
		return !slices.ContainsFunc(targets, func(t fleet.Target) bool { return t.MayInclude(n) })
	}), nil
}

// none returns the text for an empty list. It warns of groups without nodes if other groups have some.
func (c *nodesCommand) none(all []model.Node) string {
	groups := fleet.Targets(nil, c.groups, false)
	unknown := slices.DeleteFunc(slices.Clone(groups), func(t fleet.Target) bool { return slices.ContainsFunc(all, t.MayInclude) })
	switch {
	case len(groups) == 0:
		return "no known nodes; nodes run muster agent run"
	case len(unknown) < len(groups) || len(c.nodes) > 0:
		WarnUnknown(c.Log, unknown, all)
		return "" // the list is not empty
	default:
		return NoSuchGroups(groups, all)
	}
}

// nodeRows returns one row per manifest of a node. Only the first row repeats the columns of the node. A
// problem of the node gets an additional first row.
func nodeRows(p print.Printer, n nodeStatus, now time.Time) [][]string {
	uptime, away := print.Age(n.Started, now), string(fleet.Absent(n.Node))
	if away != "" {
		uptime = "-"
	}
	n.Message = cmp.Or(n.Flooding, fleet.WhyUnreadable(n.Node), n.Message)
	if n.Clock.Apparent() {
		n.Message = strings.TrimPrefix(n.Message+"; its clock is "+n.Clock.String(), "; ")
	}
	word := away
	if n.Paused != nil && away == "" {
		n.Message = strings.TrimSuffix(n.Paused.String()+"; "+n.Message, "; ")
		word = string(fleet.StatusPaused)
	}
	first := []string{n.Node.Node, cmp.Or(print.Cut(n.Version, maxNodeWord), "-"), uptime, print.Age(n.Heard, now), strconv.Itoa(n.Outbox), groupsOf(n)}
	var rows [][]string
	if len(n.Statuses) == 0 || n.Message != "" {
		rows = append(rows, append(first, "-", "", word, "", print.OneLine(n.Message)))
		first = make([]string, len(first))
	}
	shown, more := withoutMost(n.Statuses)
	for _, s := range shown {
		word := string(s.Outcome)
		switch {
		case away != "":
			word = away
		case !s.Done():
			word = string(s.Status)
		}
		late := ""
		if s.Late() {
			late = print.Age(s.Assigned, now)
		}
		rows = append(rows, append(first, s.Key, revisions(s.RolloutStatus), cmp.Or(word, "-"), late, print.OneLine(s.Reason)))
		first = make([]string, len(first))
	}
	if more > 0 {
		rows = append(rows, append(first, fmt.Sprintf("and %d more", more), "", string(fleet.StatusUnassigned), "", "reported by the node (see --json)"))
	}

	return rows
}

// Limits for the table; --json prints everything.
const (
	maxNodeWord   = 40
	maxGroups     = 20
	maxUnassigned = 20
)

// groupsOf joins the groups of a node with commas and cuts long lists.
func groupsOf(n nodeStatus) string {
	var words []string
	for _, g := range n.Groups[:min(len(n.Groups), maxGroups)] {
		words = append(words, print.Cut(g, maxNodeWord))
	}
	line := cmp.Or(strings.Join(words, ","), "-")
	if more := len(n.Groups) - maxGroups; more > 0 {
		line = fmt.Sprintf("%s and %d more", line, more)
	}

	return line
}

// withoutMost limits the unassigned manifests that a node reports, and returns how many it left out.
func withoutMost(all []view.Assignment) (shown []view.Assignment, more int) {
	unassigned := 0
	for _, s := range all {
		if s.Status == fleet.StatusUnassigned {
			if unassigned++; unassigned > maxUnassigned {
				more++
				continue
			}
		}
		shown = append(shown, s)
	}

	return shown, more
}

// revisions returns the current revision, and the desired revision if it differs.
func revisions(s fleet.RolloutStatus) string {
	switch {
	case s.Status == fleet.StatusUnassigned:
		return strconv.FormatUint(s.Current, 10)
	case s.Current != s.Desired:
		return fmt.Sprintf("%d of %d", s.Current, s.Desired)
	default:
		return strconv.FormatUint(s.Desired, 10)
	}
}
