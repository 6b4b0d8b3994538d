package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/choria-io/fisk"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// reportsCommand implements muster fleet reports.
type reportsCommand struct {
	*cli.Env
	print.Format
	Order
	TargetFlags
	follow               bool
	since                string
	kind, outcome, cause string
}

// addReports adds muster fleet reports.
func addReports(env *cli.Env, parent *fisk.CmdClause) {
	c := &reportsCommand{Env: env}
	cmd := parent.Command("reports", "Show reports of nodes, live")
	cmd.HelpLong("One line per report: time, node, kind, outcome, subject. Starts ten minutes back and follows until interrupted; --no-follow prints all stored reports and exits.\n\n" +
		"Outcomes of runs and resources: stable (nothing to do), changed, refreshed, failed, noop (would change), skipped (not managed there), unmet (a requirement failed), notrun (the run ended early), rejected (the manifest or its signature is invalid; --json and subjects call it refused).\n\n" +
		"  muster fleet reports\n  muster fleet reports --outcome failed --since 2d --no-follow\n  muster fleet reports --cause drift --kind transaction\n  muster fleet reports --no-follow --limit 20\n  muster fleet reports --node web01 --kind transaction --json | jq .data.error")
	cmd.Flag("follow", "Follow new reports").Default("true").BoolVar(&c.follow)
	cmd.Flag("since", "Start at this time, or this long ago").PlaceHolder("TIME|DURATION").StringVar(&c.since)
	c.AddFilter(env, cmd, "Show reports of this node; repeatable", "Filter by group, with its current nodes; repeatable")
	cli.Enum(cmd.Flag("kind", "Filter by kind: run, transaction, health, ensure or node").PlaceHolder("KIND"), &c.kind, model.Kinds()...)
	cli.EnumMeant(cmd.Flag("outcome", "Filter by outcome: stable, changed, failed …").PlaceHolder("OUTCOME"), &c.outcome,
		map[string]string{string(fleet.StatusUpToDate): string(model.OutcomeStable)}, model.ReportOutcomes()...)
	cli.Enum(cmd.Flag("cause", "Filter by cause of the run: manifest, schedule, drift, health, ensure or request").PlaceHolder("CAUSE"), &c.cause, model.ReportCauses()...)
	cmd.Flag("reverse", "Show the newest first").UnNegatableBoolVar(&c.Reverse)
	cmd.Flag("limit", "With --no-follow, show the newest N; otherwise exit after N; 0 shows all").Default("0").PlaceHolder("N").IntVar(&c.Limit)
	cmd.Flag("json", "Print one JSON document per line").UnNegatableBoolVar(&c.JSON)
	cmd.Flag("yaml", "Print YAML documents").UnNegatableBoolVar(&c.YAML)
	cmd.Action(env.Action(c.run))
}

// followedSince is the age of the first reports of a live view.
const followedSince = 10 * time.Minute

func (c *reportsCommand) filter() (model.ReportRange, error) {
	f := model.ReportRange{Kind: c.kind, Outcome: c.outcome, Follow: c.follow}
	if f.Outcome == string(fleet.StatusRejected) {
		f.Outcome = string(model.OutcomeRefused)
	}
	if c.follow {
		f.Since = time.Now().Add(-followedSince)
	}
	if err := parseBefore("since", c.since, &f.Since); err != nil {
		return f, err
	}
	for _, node := range c.nodes {
		if !model.IsToken(node) {
			return f, cli.Usagef("--node %q: write one word of letters, digits, - and _", node)
		}
	}

	return f, nil
}

func (c *reportsCommand) run(ctx context.Context) error {
	if err := c.checkOrder(); err != nil {
		return err
	}
	on, err := c.CompileOn(c.Env)
	if err != nil {
		return err
	}
	filter, err := c.filter()
	if err == nil {
		err = CheckTargets(fleet.Targets(nil, c.groups, false))
	}
	if err != nil {
		return err
	}
	store, err := Open(ctx, c.Env, NeedReports)
	if err != nil {
		return err
	}
	of, undecided, err := c.of(ctx, store, on)
	if err != nil {
		return err
	}
	if len(of) == 1 {
		filter.Node = slices.Collect(maps.Keys(of))[0]
	}
	if c.follow && !c.Given("follow") && c.Print.IsPipe() {
		c.Print.Remark("following new reports until ctrl-C; --no-follow prints the stored reports and exits")
	}
	if c.follow {
		defer sayOutages(c.Print, store.KV.Conn)()
	}

	return errors.Join(c.list(ctx, kvstore.NewReports(store.KV).Reports(ctx, filter), of), undecided)
}

// list prints each report of the given nodes once; nil means all nodes.
func (c *reportsCommand) list(ctx context.Context, all iter.Seq2[model.Report, error], of map[string]bool) error {
	var newest []model.Report
	known, count := view.NewRepeats(), 0
	isNewest := !c.follow && c.Limit > 0
	for r, err := range all {
		switch {
		case err != nil && errors.Is(context.Cause(ctx), cli.ErrInterrupted):
			return nil
		case errors.Is(err, kvstore.ErrInvalidEvent):
			c.Log.Warn("invalid report", "error", err)
			continue
		case err == nil && known.SeenBefore(r.Node, r.ID):
			continue
		case err == nil && (c.cause != "" && string(r.Cause) != c.cause || of != nil && !of[r.Node]):
			continue
		case err == nil && isNewest:
			if newest = append(newest, r); len(newest) == 2*c.Limit {
				newest = slices.Delete(newest, 0, c.Limit)
			}
		case err == nil:
			count++
			err = c.show(r)
		}
		if err != nil {
			return err
		}
		if c.Limit > 0 && count == c.Limit {
			return nil
		}
	}
	newest = newest[max(0, len(newest)-c.Limit):]
	if c.Reverse {
		slices.Reverse(newest)
	}
	for _, r := range newest {
		if err := c.show(r); err != nil {
			return err
		}
	}

	return nil
}

// of returns the selected nodes, nil for all. undecided reports nodes for which the expression could not be
// evaluated.
func (c *reportsCommand) of(ctx context.Context, store *Store, on *targets.Expression) (of map[string]bool, undecided, err error) {
	if on != nil {
		found, err := find(ctx, store, on, nil)
		return found.names(), found.undecided, err
	}
	targets := fleet.Targets(c.nodes, c.groups, false)
	if len(targets) == 0 || c.all {
		return nil, nil, nil
	}
	// Reports remain after a node is forgotten, so the node may be unknown.
	for _, name := range c.nodes {
		if _, err := kvstore.NewNodes(store.KV).State(ctx, name); errors.Is(err, model.ErrNotFound) {
			c.warnUnknown(ctx, store, name)
		}
	}
	var known []model.Node
	if len(c.groups) > 0 {
		if known, err = store.Nodes(ctx); err != nil {
			return nil, nil, err
		}
		if err := NoSuchTargets(fleet.Targets(nil, c.groups, false), known); err != nil {
			return nil, nil, err
		}
	}

	return selection{targets: targets, known: known}.names(), nil, nil
}

// warnUnknown warns of an unknown node, with a suggestion.
func (c *reportsCommand) warnUnknown(ctx context.Context, store *Store, name string) {
	event := "no such node, see muster fleet nodes"
	if known, err := store.Nodes(ctx); err == nil {
		if near := NearTarget(fleet.Target{Node: name}, known); near != "" {
			event = "no such node, did you mean " + near + "?"
		}
	}
	c.Log.Warn(event, "node", name)
}

// show prints a report.
func (c *reportsCommand) show(r model.Report) error {
	return c.Print.Item(c.Format, r, ReportLine(c.Print, r))
}

// maxNewest is the largest --limit for stored reports, because the command holds them in memory.
const maxNewest = 10_000

// checkOrder validates --reverse and --limit.
func (c *reportsCommand) checkOrder() error {
	switch {
	case c.Reverse && c.follow:
		return cli.Usagef("--reverse needs --no-follow")
	case c.Reverse && (c.Limit == 0 || c.Limit > maxNewest):
		return cli.Usagef("--reverse needs --limit N, at most %d", maxNewest)
	case !c.follow && c.Limit > maxNewest:
		return cli.Usagef("--limit %d is more than %d; omit --limit to show all stored reports", c.Limit, maxNewest)
	default:
		return c.Check()
	}
}

// ReportLine formats a report as a line of text.
func ReportLine(p print.Printer, r model.Report) string {
	subject, summary := view.DescribeReport(r)
	if by := view.SenderOf(r); by != "" {
		summary = strings.TrimPrefix(summary+", by "+by, ", ")
	}
	if subject != "" && summary != "" {
		subject += ": "
	}
	word := string(r.Outcome)
	if r.Outcome == model.OutcomeRefused {
		word = string(fleet.StatusRejected) // as in muster fleet nodes
	}
	outcome := p.Word(word) + strings.Repeat(" ", max(9-len(word), 0))

	return fmt.Sprintf("%s  %s  %-11s  %s  %s", print.Time(r.Time), r.Node, r.Kind, outcome, print.Text(subject+print.OneLine(summary)))
}

// sayOutages prints when the connection is lost and restored, until stop is called. Without it an outage
// looks like a quiet fleet.
func sayOutages(p print.Printer, nc *nats.Conn) (stop func()) {
	changed := nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED)
	ended := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		isAway := false
		for {
			select {
			case status, open := <-changed:
				if !open {
					return
				}
				if away := status == nats.RECONNECTING; away != isAway {
					isAway = away
					if away {
						p.Remark("NATS is unreachable; new reports follow after the reconnect")
					} else {
						p.Remark("NATS is reachable again")
					}
				}
			case <-ended:
				return
			}
		}
	})

	return func() {
		nc.RemoveStatusListener(changed)
		close(ended)
		all.Wait()
	}
}

// missingReports returns a remark about nodes whose older reports may be missing.
func missingReports(shares *view.Shares, b model.ReportBounds) []string {
	var full []string
	for _, share := range shares.Full(b) {
		full = append(full, share.Name)
	}
	if len(full) == 0 {
		return nil
	}

	return []string{fmt.Sprintf("only the newest %d reports of each are retained: %s", b.PerSubject, print.Some(full, "and others"))}
}
