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
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Limits for the screen; --json and --yaml print everything.
const (
	maxAssignments = 40
	maxReports     = 15
	maxList        = 20
)

// describeCommand implements muster fleet describe.
type describeCommand struct {
	*cli.Env
	print.Format
	nodeFlags
}

// described is the document that the command prints.
type described struct {
	view.Node
	// Reports are the newest reports of each kind and outcome, newest first.
	Reports []model.Report `json:"reports"`
}

// addDescribe adds muster fleet describe.
func addDescribe(env *cli.Env, parent *fisk.CmdClause) {
	c := &describeCommand{Env: env}
	cmd := parent.Command("describe", "Show everything about one node")
	cmd.HelpLong("Its state, its manifests and why one is late, and its newest report of each kind and outcome: what ran, what failed, what the node noticed. muster fleet reports --node NODE has the others.\n\n  muster fleet describe web01\n  muster fleet describe web01 --json")
	cli.NodeVar(cmd.Arg("node", "Name of the node").HintAction(env.CompleteNodes), &c.node)
	cli.NodeVar(cmd.Flag("node", "Name of the node").PlaceHolder("NODE").HintAction(env.CompleteNodes), &c.flagged)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *describeCommand) run(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	store, err := Open(ctx, c.Env, NeedNodes, NeedManifests, NeedReports)
	if err != nil {
		return err
	}
	n, err := kvstore.NewNodes(store.KV).State(ctx, c.node)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return store.NoSuchNode(ctx, c.node)
	case err != nil && n.Unreadable == "":
		return err
	}
	entries, err := store.List(ctx)
	if err != nil {
		return err
	}
	statuses := fleet.NewAssigned(entries).Statuses(n)
	if err := fleet.ExplainSkipped(ctx, store.Get, statuses); err != nil {
		return err
	}
	d := described{Node: view.NewNode(n, statuses, fleet.NewAssigned(entries))}
	if d.Reports, err = c.reports(ctx, store); err != nil {
		return err
	}

	return c.Print.Result(c.Format, d, func() { screen{Printer: c.Print, names: store.KV.Names, whole: true}.describe(d, time.Now()) })
}

// reports returns the newest reports of the node. Invalid reports are logged and skipped.
func (c *describeCommand) reports(ctx context.Context, store *Store) ([]model.Report, error) {
	all, err := kvstore.NewReports(store.KV).Newest(ctx, c.node)
	for _, err := range kvstore.SplitDenials(err) {
		if !errors.Is(err, kvstore.ErrInvalidEvent) {
			return nil, err
		}
		c.Log.Warn("invalid report", "error", err)
	}
	if all == nil {
		all = []model.Report{}
	}

	return all, nil
}

// describe prints the state, manifests and reports of a node.
func (p screen) describe(d described, now time.Time) {
	p.line("node", "%s", d.Node.Node.Node)
	state := string(d.State)
	if !d.Since.IsZero() {
		word := " since "
		if !d.BeganAt() {
			word = ", last at " // it may have failed before
		}
		state += word + print.Time(d.Since) + " (" + print.Age(d.Since, now) + " ago)"
	}
	p.line("state", "%s", state)
	if why := fleet.WhyUnreadable(d.Node.Node); why != "" {
		p.line("message", "%s", why)
	} else {
		p.properties(d.Node.Node, now)
	}
	p.Printf("\n")
	p.assignments(d.Node, now)
	p.newest(d.Reports)
	p.line("next", "%s", p.names.Run("fleet reports --node "+d.Node.Node.Node+" --no-follow"))
}

// properties prints the properties that the node reported.
func (p screen) properties(n model.Node, now time.Time) {
	host := print.Cut(n.Host, maxWord*2)
	if host == "" {
		host = "-"
	}
	p.line("host", "%s", host)
	version := "muster " + print.Cut(n.Version, maxWord)
	if view.IsOlder(n.Version, cli.Version()) {
		version += " (older than this one, " + cli.Version() + ")"
	}
	p.line("agent", "%s, started %s ago, last seen %s ago", version, print.Age(n.Started, now), print.Age(n.Heard, now))
	p.line("groups", "%s", list(append(slices.Clip(n.Groups), model.GroupAll)))
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		labels = append(labels, key+"="+n.Labels[key])
	}
	if len(labels) > 0 {
		p.line("labels", "%s", list(labels))
	}
	if n.Paused != nil {
		p.line("paused", "%s (%s)", cmp.Or(n.Paused.Details(), "paused"), n.Paused.From)
	}
	if n.Clock.Within > 0 { // otherwise the clock was not measured
		p.line("clock", "%s", n.Clock)
	}
	p.line("outbox", "%s waiting", print.Count(n.Outbox, "report"))
	p.line("watched", "%s", print.Count(n.Watches, "resource"))
	if n.Polled > 0 {
		p.line("polled", "%s that cannot be watched", print.Count(n.Polled, "resource"))
	}
	if h := n.Health; h != (model.HealthCounts{}) {
		p.line("health", "%d ok, %d warning, %d critical, %d unknown", h.OK, h.Warning, h.Critical, h.Unknown)
	}
	most(p, "flapping", len(n.Flapping), func(i int) string {
		f := n.Flapping[i]
		return fmt.Sprintf("%s of %s since %s, %s", f.Resource, f.Manifest, print.Age(f.Since, now), f.By())
	})
	if n.Message != "" {
		p.line("message", "%s", n.Message)
	}
}

// list joins words with commas and cuts long lists.
func list(words []string) string {
	var out []string
	for _, w := range words[:min(len(words), maxList)] {
		out = append(out, print.Cut(w, maxWord))
	}
	if more := len(words) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more (see --json)", more))
	}

	return strings.Join(out, ", ")
}

// assignments prints a row for each manifest of a node.
func (p screen) assignments(n view.Node, now time.Time) {
	var rows [][]string
	for _, s := range n.Statuses[:min(len(n.Statuses), maxAssignments)] {
		m := n.Manifests[s.Key]
		counts, late := "", ""
		if s.Current > 0 && m.Counts.Total > 0 {
			counts = m.Counts.Text()
		}
		if s.Late() {
			late = print.Age(s.Assigned, now)
		}
		rows = append(rows, []string{s.Key, strconv.FormatUint(s.Desired, 10), strconv.FormatUint(s.Current, 10), string(s.Status), string(s.Outcome), print.Age(s.At, now), late, counts, print.OneLine(s.Reason)})
	}
	p.Table([]string{"MANIFEST", "DESIRED", "CURRENT", "STATUS", "OUTCOME", "LAST RUN", "LATE FOR", "RESOURCES", "REASON"}, rows, "no manifests are assigned")
	if more := len(n.Statuses) - maxAssignments; more > 0 {
		p.Printf("and %s more (see --json)\n", print.Count(more, "manifest"))
	}
	p.Printf("\n")
}

// newest prints a line for each of the newest reports.
func (p screen) newest(all []model.Report) {
	if len(all) == 0 {
		p.Printf("no reports are stored\n")
		return
	}
	p.Printf("newest reports of each kind and outcome:\n")
	for _, r := range all[:min(len(all), maxReports)] {
		p.Printf("%s\n", print.Cut(ReportLine(p.Printer, r), maxReportLine))
	}
	if more := len(all) - maxReports; more > 0 {
		p.Printf("and %s more (see --json)\n", print.Count(more, "report"))
	}
}

// maxReportLine is the maximum length of a printed report, in characters.
const maxReportLine = 300
