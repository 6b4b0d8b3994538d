package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/fleet"
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
	cmd.HelpLong("  muster fleet ls\n  muster fleet ls motd              who has a manifest of that name\n  muster fleet ls --group web       what a group has")
	cmd.Arg("name", "Only manifests of this name").StringVar(&c.name)
	c.targets.add(cmd)
	c.format.add(cmd)
	cmd.Action(a.action(func() error { return a.fleetLs(ctx, c) }))
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
	if c.isDocument() {
		if entries == nil {
			entries = []fleet.Entry{}
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
		target, name, err := fleet.ParseKey(e.Key)
		if err != nil {
			return err
		}
		rows[i] = []string{target.String(), name, strconv.FormatUint(e.Revision, 10), shortDigest(e.Digest), age(e.At, now)}
	}
	a.table([]string{"FOR", "NAME", "REVISION", "DIGEST", "AGE"}, rows)

	return nil
}
