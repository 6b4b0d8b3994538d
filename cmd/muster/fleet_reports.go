package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore/reports"
	"github.com/musterfleet/muster/model"
)

// fleetReportsCommand is muster fleet reports.
type fleetReportsCommand struct {
	format
	follow              bool
	since               string
	node, kind, outcome string
}

func (a *app) addFleetReports(ctx context.Context, parent *fisk.CmdClause) {
	c := &fleetReportsCommand{}
	cmd := parent.Command("reports", "Show what nodes report, live")
	cmd.HelpLong("A line a report: when, which node, what kind, what came of it, about what. It begins with the last ten minutes and goes on until it is interrupted; with --no-follow it shows all there is and ends.\n\n" +
		"  muster fleet reports\n  muster fleet reports --outcome failed --since 2d --no-follow\n  muster fleet reports --node web01 --kind transaction --json | jq .data.error")
	cmd.Flag("follow", "Go on with what comes").Default("true").BoolVar(&c.follow)
	cmd.Flag("since", "Begin at this time, or this long ago").PlaceHolder("TIME|DURATION").StringVar(&c.since)
	cmd.Flag("node", "Only this node's").PlaceHolder("NODE").StringVar(&c.node)
	cmd.Flag("kind", "Only this kind: run, transaction, health, ensure or node").PlaceHolder("KIND").EnumVar(&c.kind, model.KindRun, model.KindTransaction, model.KindHealth, model.KindEnsure, model.KindNode)
	cmd.Flag("outcome", "Only this outcome: stable, changed, failed …").PlaceHolder("OUTCOME").StringVar(&c.outcome)
	cmd.Flag("json", "Print one JSON document a line").UnNegatableBoolVar(&c.json)
	cmd.Flag("yaml", "Print YAML documents").UnNegatableBoolVar(&c.yaml)
	cmd.Action(a.operation(func() error { return a.fleetReports(ctx, c) }))
}

// followedSince is how far back a live view begins.
const followedSince = 10 * time.Minute

func (c *fleetReportsCommand) filter(now time.Time) (reports.Filter, error) {
	f := reports.Filter{Node: c.node, Kind: c.kind, Outcome: c.outcome, Follow: c.follow}
	switch {
	case c.since != "":
		at, err := moment(c.since, now, -1)
		if err != nil {
			return f, usagef("--since: %w", err)
		}
		f.Since = at
	case c.follow:
		f.Since = now.Add(-followedSince)
	}
	for _, token := range []string{c.node, c.outcome} {
		if token != "" && !model.IsToken(token) {
			return f, usagef("%q: write one word of letters, digits, - and _", token)
		}
	}

	return f, nil
}

func (a *app) fleetReports(ctx context.Context, c *fleetReportsCommand) error {
	filter, err := c.filter(time.Now())
	if err != nil {
		return err
	}
	store, err := a.fleet(ctx)
	if err != nil {
		return err
	}
	for r, err := range store.reports(ctx, filter) {
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errInterrupted):
			return nil
		case errors.Is(err, reports.ErrInvalidEvent):
			a.log.Warn("a report cannot be read", "error", err)
		case err != nil:
			return err
		default:
			if err := a.printReport(r, c.format); errors.Is(err, syscall.EPIPE) {
				return nil // the reader left, it has what it wanted
			} else if err != nil {
				return err
			}
		}
	}

	return nil
}

func (a *app) printReport(r model.Report, f format) error {
	switch {
	case f.json:
		return a.printJSONLine(r)
	case f.yaml:
		_, err := fmt.Fprintln(a.stdout, "---")
		return errors.Join(err, a.printDocument(r, true))
	}
	text := printable(joinedBy(": ", fleet.ReportSubject(r), oneLine(fleet.ReportSummary(r))))
	outcome := fmt.Sprintf("%-9s", r.Outcome)
	if painted := a.paintWord(string(r.Outcome)); painted != string(r.Outcome) {
		outcome = painted + outcome[min(len(r.Outcome), len(outcome)):]
	}
	_, err := fmt.Fprintf(a.stdout, "%s  %s  %-11s  %s  %s\n", r.Time.Local().Format("2006-01-02 15:04:05"), r.Node, r.Kind, outcome, text)

	return err
}

// joinedBy joins two texts where both are there.
func joinedBy(by, a, b string) string {
	if a == "" || b == "" {
		return a + b
	}

	return a + by + b
}
