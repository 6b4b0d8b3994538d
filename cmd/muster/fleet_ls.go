package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// fleetLsCommand is muster fleet ls.
type fleetLsCommand struct {
	targets
	format
	name string
}

func (a *app) addFleetLs(ctx context.Context, parent *fisk.CmdClause) {
	c := &fleetLsCommand{}
	cmd := parent.Command("ls", "List what is assigned")
	cmd.HelpLong("A row for each assignment, and for each key that is none.\n\n  muster fleet ls\n  muster fleet ls motd              who has a manifest of that name\n  muster fleet ls --group web       what a group has")
	cmd.Arg("name", "Only manifests of this name").StringVar(&c.name)
	c.targets.add(cmd)
	c.format.add(cmd)
	cmd.Action(a.operation(func() error { return a.fleetLs(ctx, c) }))
}

func (a *app) fleetLs(ctx context.Context, c *fleetLsCommand) error {
	var families []string
	if len(c.nodes)+len(c.groups) > 0 || c.all {
		list, err := c.list()
		if err != nil {
			return err
		}
		for _, t := range list {
			families = append(families, t.String())
		}
	}
	if c.name != "" {
		if err := checkNameOrKey(c.name); err != nil {
			return err
		}
	}
	store, err := a.fleet(ctx)
	if err != nil {
		return err
	}
	entries, err := store.list(ctx, families, c.name)
	if err != nil {
		return err
	}
	invalid, err := c.invalid(ctx, store, families)
	if err != nil {
		return err
	}
	entries = append(entries, invalid...)
	if c.isDocument() {
		if entries == nil {
			entries = []model.Entry{}
		}
		return a.printDocument(entries, c.yaml)
	}
	if len(entries) == 0 {
		fmt.Fprintln(a.stderr, "nothing is assigned")
		return nil
	}
	now := time.Now()
	rows := make([][]string, len(entries))
	for i, e := range entries {
		if e.Invalid {
			rows[i] = []string{"-", e.Key, strconv.FormatUint(e.Revision, 10), "invalid", age(e.Time, now)}
			continue
		}
		target, name, err := fleet.ParseKey(e.Key)
		if err != nil {
			return err
		}
		rows[i] = []string{target.String(), name, strconv.FormatUint(e.Revision, 10), shortDigest(e.Digest), age(e.Time, now)}
	}
	a.table([]string{"FOR", "NAME", "REVISION", "DIGEST", "AGE"}, rows)
	if len(invalid) > 0 {
		fmt.Fprintf(a.stderr, "%s none of an assignment and for nobody: keys are node.<node>.<name> or group.<group>.<name>; muster fleet rm KEY removes one\n", map[bool]string{true: "1 key is", false: plural(len(invalid), "key") + " are"}[len(invalid) == 1])
	}

	return nil
}

// invalid gives the keys that are none of an assignment, of those asked for.
func (c *fleetLsCommand) invalid(ctx context.Context, store *fleetStore, families []string) ([]model.Entry, error) {
	all, err := store.Invalid(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(e model.Entry) bool {
		within := len(families) == 0 || slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(e.Key, f+".") })
		return !within || c.name != "" && c.name != e.Key
	}), nil
}
