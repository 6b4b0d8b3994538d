package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/choria-io/fisk"
	"github.com/choria-io/fisk/units"
	"golang.org/x/term"

	"github.com/musterfleet/muster/kvstore/provision"
)

// fleetInitCommand is muster fleet init.
type fleetInitCommand struct {
	replicas               int
	reportAge              time.Duration
	reportSize, bundleSize size
	yes, dryRun            bool
	replicasSet, ageSet    bool
	format
}

func (a *app) addFleetInit(ctx context.Context, fleet *fisk.CmdClause) {
	c := &fleetInitCommand{}
	cmd := fleet.Command("init", "Make the buckets and streams of a fleet, or bring them up to date")
	cmd.HelpLong("Shows what it does. Run again it changes only what differs; a change of what is there already is asked for, or needs --yes, and nothing that holds data is made smaller.\n\n" +
		"  muster fleet init --dry-run\n  muster fleet init --replicas 3 --report-age 30d")
	wholeNumber(cmd.Flag("replicas", "On how many servers each is kept; 1 when it is made").PlaceHolder("N").IsSetByUser(&c.replicasSet), &c.replicas)
	cmd.Flag("report-age", "How long reports are kept; 7d when it is made").PlaceHolder("AGE").IsSetByUser(&c.ageSet).DurationVar(&c.reportAge)
	cmd.Flag("report-size", "How much of reports is kept; 1GiB when it is made").PlaceHolder("SIZE").SetValue(&c.reportSize)
	cmd.Flag("bundle-size", "How large all bundles together may be; without a bound when it is made").PlaceHolder("SIZE").SetValue(&c.bundleSize)
	cmd.Flag("dry-run", "Change nothing, show what would be done").UnNegatableBoolVar(&c.dryRun)
	cmd.Flag("yes", "Do not ask").Short('y').UnNegatableBoolVar(&c.yes)
	c.add(cmd)
	cmd.Action(a.operation(func() error { return a.fleetInit(ctx, c) }))
}

// size is a flag of a number of bytes: 10MiB, 10M or 10MB are the same.
type size units.Base2Bytes

// Set reads it.
func (s *size) Set(text string) error {
	n, err := units.ParseBase2Bytes(text)
	if err != nil {
		n, err = units.ParseBase2Bytes(text + "B")
	}
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is no size above 0, write it with its unit, for example 10MiB", text)
	}
	*s = size(n)

	return nil
}

// String gives it with its unit.
func (s *size) String() string { return units.Base2Bytes(*s).String() }

func (c *fleetInitCommand) options() provision.Options {
	return provision.Options{
		Replicas: c.replicas, ReportAge: c.reportAge, ReportBytes: int64(c.reportSize), BundleBytes: int64(c.bundleSize),
	}
}

func (a *app) fleetInit(ctx context.Context, c *fleetInitCommand) error {
	if c.replicasSet && (c.replicas < 1 || c.replicas > 5) {
		return usagef("--replicas %d: a stream has 1 to 5", c.replicas)
	}
	if c.ageSet && c.reportAge <= 0 {
		return usagef("--report-age must be more than 0")
	}
	store, err := a.store(ctx)
	if err != nil {
		return err
	}
	c.dryRun = noop(c.dryRun)
	planned, err := store.Plan(ctx, c.options())
	if err != nil {
		return err
	}
	if !c.isDocument() {
		a.printDifferences(planned)
	}
	switch {
	case c.dryRun || len(planned) == 0:
	default:
		if err := a.confirm(c, planned); err != nil {
			return err
		}
		if planned, err = store.Apply(ctx, c.options()); err != nil {
			return roomHint(err)
		}
	}
	if c.isDocument() {
		if planned == nil {
			planned = []provision.Difference{}
		}
		return a.printDocument(planned, c.yaml)
	}
	if len(planned) > 0 && !c.dryRun {
		fmt.Fprintln(a.stdout, "done")
	}

	return nil
}

// roomHint says what to do about a server without room. What was made before it
// stays, so the same command goes on from there.
func roomHint(err error) error {
	if !errors.Is(err, provision.ErrNoRoom) {
		return err
	}

	return fmt.Errorf("%w (run it again with a smaller --report-size or --bundle-size, or raise what the account may use: max_file and max_streams of its jetstream block, max_file_store of the server's; seven streams are made)", err)
}

func (a *app) printDifferences(planned []provision.Difference) {
	if len(planned) == 0 {
		fmt.Fprintln(a.stdout, "all is as it must be")
	}
	for _, d := range planned {
		if d.Create {
			fmt.Fprintf(a.stdout, "create %s\n", d.Stream)
		}
		for _, change := range d.Changes {
			fmt.Fprintf(a.stdout, "change %s: %s\n", d.Stream, change)
		}
	}
}

// confirm asks before something that is there already is changed. What is
// refused needs no question: applying says so.
func (a *app) confirm(c *fleetInitCommand, planned []provision.Difference) error {
	refused := slices.ContainsFunc(planned, func(d provision.Difference) bool {
		return slices.ContainsFunc(d.Changes, func(change provision.Change) bool { return change.Refused != "" })
	})
	if c.yes || refused || !slices.ContainsFunc(planned, func(d provision.Difference) bool { return !d.Create }) {
		return nil
	}
	if !a.asksPeople() || !isTerminal(a.stderr) {
		return fmt.Errorf("nothing was changed: changes of what is there already need --yes")
	}
	fmt.Fprint(a.stderr, "Change what is there already? [y/N] ")
	answer, _ := bufio.NewReader(a.stdin).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return fmt.Errorf("nothing was changed")
	}

	return nil
}

// asksPeople says that somebody can answer a question.
func (a *app) asksPeople() bool {
	in, ok := a.stdin.(*input)

	return ok && term.IsTerminal(int(in.file.Fd()))
}
