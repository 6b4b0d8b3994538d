package main

import (
	"cmp"
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

// fleetNodesCommand is muster fleet nodes.
type fleetNodesCommand struct {
	format
	names  []string
	groups []string
}

// nodeStanding is a node with how it stands with what is assigned to it.
type nodeStanding struct {
	model.Node
	Standings []fleet.Standing `json:"standings"`
}

func (a *app) addFleetNodes(ctx context.Context, parent *fisk.CmdClause) {
	c := &fleetNodesCommand{}
	cmd := parent.Command("nodes", "Show the nodes, what they run, and who is late, silent or stopped")
	cmd.HelpLong("A row for each manifest of a node. HEARD is when it last said something, OUTBOX how many reports it still has.\n\n  muster fleet nodes\n  muster fleet nodes --group web\n  muster fleet nodes web01 --json")
	cmd.Arg("node", "Only these").StringsVar(&c.names)
	cmd.Flag("group", "Only the nodes of a group; may be given several times").PlaceHolder("GROUP").StringsVar(&c.groups)
	c.add(cmd)
	cmd.Action(a.operation(func() error { return a.fleetNodes(ctx, c) }))
}

func (a *app) fleetNodes(ctx context.Context, c *fleetNodesCommand) error {
	store, err := a.fleet(ctx)
	if err != nil {
		return err
	}
	all, err := store.Nodes(ctx)
	if err != nil {
		return err
	}
	entries, err := store.list(ctx, nil, "")
	if err != nil {
		return err
	}
	nodes, err := c.chosen(all)
	if err != nil {
		return err
	}
	list := withStandings(nodes, entries)
	if c.isDocument() {
		return a.printDocument(list, c.yaml)
	}
	if len(list) == 0 {
		fmt.Fprintln(a.stderr, "no node is known; nodes run muster agent run")
		return nil
	}
	var rows [][]string
	now := time.Now()
	for _, n := range list {
		rows = append(rows, nodeRows(n, now)...)
	}
	a.table([]string{"NODE", "VERSION", "UP", "HEARD", "OUTBOX", "GROUPS", "MANIFEST", "REVISION", "OUTCOME", "NOTE"}, rows)

	return nil
}

// chosen gives the nodes that the flags ask for; a named one that is not known
// is an error.
func (c *fleetNodesCommand) chosen(all []model.Node) ([]model.Node, error) {
	for _, name := range c.names {
		if !slices.ContainsFunc(all, func(n model.Node) bool { return n.Node == name }) {
			return nil, fmt.Errorf("no node %s is known (see muster fleet nodes)", name)
		}
	}
	targets := fleet.Targets(nil, c.groups, false)
	var out []model.Node
	for _, n := range all {
		if len(c.names) > 0 && !slices.Contains(c.names, n.Node) {
			continue
		}
		if len(targets) > 0 && !slices.ContainsFunc(targets, func(t fleet.Target) bool { return t.Includes(n.NodeState) }) {
			continue
		}
		out = append(out, n)
	}

	return out, nil
}

// withStandings compares what nodes say with what is assigned, name by name.
func withStandings(nodes []model.Node, entries []model.Entry) []nodeStanding {
	byName := map[string][]model.Entry{}
	var names []string
	for _, e := range entries {
		_, name, err := fleet.ParseKey(e.Key)
		if err != nil {
			continue
		}
		if byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], e)
	}
	slices.Sort(names)
	out := make([]nodeStanding, len(nodes))
	at := map[string]int{}
	for i, n := range nodes {
		out[i] = nodeStanding{Node: n, Standings: []fleet.Standing{}}
		at[n.Node] = i
	}
	for _, name := range names {
		for _, s := range (fleet.Goal{Entries: byName[name]}).Standings(nodes) {
			if i, chosen := at[s.Node]; chosen {
				out[i].Standings = append(out[i].Standings, s)
			}
		}
	}
	for i, n := range nodes {
		out[i].Standings = append(out[i].Standings, fleet.Unassigned(n, entries)...)
	}

	return out
}

// nodeRows are a line for the node with its first manifest, and one for each other.
func nodeRows(n nodeStanding, now time.Time) [][]string {
	up, away := age(n.Started, now), ""
	switch {
	case n.Stopped():
		up, away = "-", string(model.NodeStopped)
	case n.Silent:
		up, away = "-", string(fleet.StandSilent)
	}
	first := []string{n.Node.Node, cmp.Or(n.Version, "-"), up, age(n.Heard, now), strconv.Itoa(n.Outbox), cmp.Or(strings.Join(n.Groups, ","), "-")}
	if len(n.Standings) == 0 {
		return [][]string{append(first, "-", "", away, oneLine(n.Message))}
	}
	var rows [][]string
	for i, s := range n.Standings {
		if i == 0 && n.Message != "" && (s.Why == "" || s.Stand == fleet.StandUnassigned) {
			s.Why = n.Message
		}
		revision := strconv.FormatUint(s.Want, 10)
		switch {
		case s.Stand == fleet.StandUnassigned:
			revision = strconv.FormatUint(s.Has, 10)
		case s.Has != s.Want:
			revision = fmt.Sprintf("%d of %d", s.Has, s.Want)
		}
		word := string(s.Outcome)
		switch {
		case away != "":
			word = away
		case !s.Done():
			word = string(s.Stand)
		}
		rows = append(rows, append(first, s.Key, revision, cmp.Or(word, "-"), oneLine(s.Why)))
		first = make([]string, len(first))
	}

	return rows
}
