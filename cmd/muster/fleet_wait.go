package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// fleetWaitCommand is muster fleet wait.
type fleetWaitCommand struct {
	format
	name     string
	revision uint64
	timeout  time.Duration
}

func (a *app) addFleetWait(ctx context.Context, parent *fisk.CmdClause) {
	c := &fleetWaitCommand{}
	cmd := parent.Command("wait", "Wait until every node runs a manifest, and say who is late and why")
	cmd.HelpLong("The nodes are those that the assignments of that name are for, as far as they are known. Exit code 0 means that all of them run the revision and nothing failed there.\n\n" +
		"  muster fleet wait motd\n  muster fleet wait group.web.motd --revision 17 --timeout 30s")
	cmd.Arg("name", "A manifest's name, or a key as muster fleet ls shows it").Required().StringVar(&c.name)
	cmd.Flag("revision", "An earlier revision than the newest").PlaceHolder("N").Uint64Var(&c.revision)
	cmd.Flag("timeout", "How long to wait; 0 looks once").Default("5m").DurationVar(&c.timeout)
	c.add(cmd)
	cmd.Action(a.operation(func() error { return a.fleetWait(ctx, c) }))
}

func (a *app) fleetWait(ctx context.Context, c *fleetWaitCommand) error {
	if err := checkNameOrKey(c.name); err != nil {
		return err
	}
	store, err := a.fleet(ctx)
	if err != nil {
		return err
	}
	w := wanted{name: c.name}
	if isKey(c.name) {
		w.keys = []string{c.name}
		_, w.name, _ = fleet.ParseKey(c.name)
	}
	if c.revision > 0 {
		key, err := store.key(ctx, c.name)
		if err != nil {
			return err
		}
		w.keys, w.revisions = []string{key}, map[string]uint64{key: c.revision}
	}
	standings, waited := a.waitFor(ctx, store, w, waitOptions{timeout: c.timeout, quiet: c.isDocument()})
	if c.isDocument() && standings != nil {
		if err := a.printDocument(standings, c.yaml); err != nil {
			return err
		}
	}

	return waited
}

// wanted is what is waited for: a name, or some keys of that name.
type wanted struct {
	name string
	keys []string
	// revisions are those of keys where it is not the newest.
	revisions map[string]uint64
}

type waitOptions struct {
	timeout time.Duration
	// quiet leaves the printing to the caller.
	quiet bool
}

// waitFor waits, prints who has not arrived, and makes the error of it.
func (a *app) waitFor(ctx context.Context, store *fleetStore, w wanted, o waitOptions) ([]fleet.Standing, error) {
	goal, err := store.goal(ctx, w)
	if err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.timeout <= 0 {
		limit = ctx
	}
	line := a.progress()
	stands := map[string]fleet.Standing{}
	waiter := fleet.Waiter{Nodes: store, Once: o.timeout <= 0, Later: store.digests, OnChange: func(s fleet.Standing) {
		stands[s.Node+" "+s.Key] = s
		done := 0
		for _, s := range stands {
			if s.Done() {
				done++
			}
		}
		line.show("%d of %s run %s", done, plural(len(stands), "node"), w.name)
	}}
	standings, err := waiter.Wait(limit, goal)
	line.clear()
	if !o.quiet {
		a.printStandings(standings)
	}

	return standings, waitError(ctx, w, o, standings, err)
}

// goal finds the assignments that are waited for, and those of the same name
// that may apply to a node instead.
func (f *fleetStore) goal(ctx context.Context, w wanted) (fleet.Goal, error) {
	entries, err := f.list(ctx, nil, w.name)
	if err != nil {
		return fleet.Goal{}, err
	}
	for key, revision := range w.revisions {
		at := slices.IndexFunc(entries, func(e model.Entry) bool { return e.Key == key })
		if at < 0 {
			entries = append(entries, model.Entry{Key: key})
			at = len(entries) - 1
		}
		if entries[at].Revision == revision {
			continue
		}
		digests, err := f.digests(ctx, key)
		if err != nil {
			return fleet.Goal{}, err
		}
		entries[at].Revision, entries[at].Digest = revision, digests[revision]
	}
	for _, key := range w.keys {
		if !slices.ContainsFunc(entries, func(e model.Entry) bool { return e.Key == key }) {
			return fleet.Goal{}, fmt.Errorf("%s is not assigned: %w (see muster fleet ls)", key, model.ErrNotFound)
		}
	}
	if len(entries) == 0 {
		return fleet.Goal{}, fmt.Errorf("no manifest %s is assigned: %w (see muster fleet ls)", w.name, model.ErrNotFound)
	}

	return fleet.Goal{Entries: entries, Keys: w.keys}, nil
}

// digests gives those of the revisions of a key that the bucket still has.
func (f *fleetStore) digests(ctx context.Context, key string) (map[uint64]string, error) {
	all, err := f.History(ctx, key)
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		return nil, err
	}
	out := map[uint64]string{}
	for _, e := range all {
		out[e.Revision] = e.Digest
	}

	return out, nil
}

// printStandings prints those that have not arrived, or how many have.
func (a *app) printStandings(standings []fleet.Standing) {
	arrived := 0
	var rows [][]string
	for _, s := range standings {
		if s.Stand == fleet.StandArrived {
			arrived++
			continue
		}
		has := "-"
		if s.Has > 0 {
			has = strconv.FormatUint(s.Has, 10)
		}
		rows = append(rows, []string{s.Node, s.Key, string(s.Stand), strconv.FormatUint(s.Want, 10), has, oneLine(s.Why)})
	}
	if len(rows) > 0 {
		a.table([]string{"NODE", "KEY", "STAND", "WANT", "HAS", "WHY"}, rows)
	}
	if arrived > 0 {
		fmt.Fprintf(a.stdout, "%s %s it\n", plural(arrived, "node"), map[bool]string{true: "runs", false: "run"}[arrived == 1])
	}
}

// waitError makes the exit code of a wait, and its last words.
func waitError(ctx context.Context, w wanted, o waitOptions, standings []fleet.Standing, err error) error {
	pending, failed := 0, 0
	for _, s := range standings {
		switch {
		case s.Stand == fleet.StandFailed:
			failed++
		case !s.Done():
			pending++
		}
	}
	switch {
	case errors.Is(err, fleet.ErrLate) && ctx.Err() != nil:
		return fmt.Errorf("%w: %d of %d nodes are not running %s", context.Cause(ctx), pending, len(standings), w.name)
	case errors.Is(err, fleet.ErrLate):
		return fmt.Errorf("%d of %d nodes are not running %s after %s", pending, len(standings), w.name, o.timeout)
	case errors.Is(err, fleet.ErrRefused):
		return fmt.Errorf("%d of %d nodes refused %s", pending, len(standings), w.name)
	case errors.Is(err, fleet.ErrNoNodes):
		return fmt.Errorf("%w: %s (see muster fleet nodes)", err, w.name)
	case err != nil:
		return err
	case failed > 0:
		return fmt.Errorf("%s failed on %d of %d nodes (see muster fleet reports --outcome failed --no-follow)", w.name, failed, len(standings))
	default:
		return nil
	}
}
