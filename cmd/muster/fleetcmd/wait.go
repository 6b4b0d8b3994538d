package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/choria-io/fisk"
	"github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// waitCommand implements muster fleet wait.
type waitCommand struct {
	*cli.Env
	print.Format
	TargetFlags
	name     string
	revision uint64
	timeout  time.Duration
}

// addWait adds muster fleet wait.
func addWait(env *cli.Env, parent *fisk.CmdClause) {
	c := &waitCommand{Env: env}
	cmd := parent.Command("wait", "Wait until every node runs a manifest, and show which do not")
	cmd.HelpLong("Waits for the known nodes that the assignments of that name target. Exit code 0: all of them run the revision, without failures.\n\n" +
		"  muster fleet wait motd\n  muster fleet wait group.web.motd --revision 17 --timeout 30s\n  muster fleet wait motd --on 'group(\"web\") && labels.rack == \"a3\"'")
	cmd.Arg("name", "Manifest name, or key (see muster fleet ls)").Required().HintAction(env.CompleteAssignments).StringVar(&c.name)
	cmd.Flag("revision", "Revision to wait for (default: the newest)").PlaceHolder("N").Uint64Var(&c.revision)
	cmd.Flag("timeout", "Maximum time to wait; 0 checks once").Default("5m").DurationVar(&c.timeout)
	c.AddFilter(env, cmd, "Node to wait for; repeatable", "Wait for the nodes of this group; repeatable")
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *waitCommand) run(ctx context.Context) error {
	if err := CheckNameOrKey(c.name); err != nil {
		return err
	}
	on, err := c.CompileOn(c.Env)
	if err == nil {
		err = CheckTargets(fleet.Targets(c.nodes, c.groups, false))
	}
	if err != nil {
		return err
	}
	store, err := Open(ctx, c.Env, NeedNodes, NeedManifests)
	if err != nil {
		return err
	}
	g := assign.Goal{Name: c.name}
	if assign.IsKey(c.name) {
		g.Keys = []string{c.name}
		_, g.Name, _ = fleet.ParseKey(c.name)
	}
	if c.revision > 0 {
		key, err := store.KeyOf(ctx, c.name)
		if err != nil {
			return err
		}
		if err := checkRevision(ctx, store, key, c.revision); err != nil {
			return err
		}
		g.Keys, g.Revisions = []string{key}, map[string]uint64{key: c.revision}
	}
	var undecided error
	if list := fleet.Targets(c.nodes, c.groups, false); on != nil || len(list) > 0 && !c.all {
		found, err := find(ctx, store, on, list)
		if err == nil && on == nil {
			err = NoSuchTargets(list, found.known)
		}
		if err != nil {
			return err
		}
		undecided, g.Nodes = found.undecided, found.names()
	}
	statuses, waited := (&Wait{Env: c.Env, Goal: g, Timeout: c.timeout, Quiet: c.IsDocument(), Again: c.again()}).Run(ctx, store)
	if c.IsDocument() && statuses != nil {
		if err := c.Print.Document(statuses, c.YAML); err != nil {
			return err
		}
	}

	return errors.Join(waited, undecided)
}

// again returns the arguments of this command.
func (c *waitCommand) again() []string {
	out := []string{"fleet", "wait", c.name}
	if c.revision > 0 {
		out = append(out, "--revision", strconv.FormatUint(c.revision, 10))
	}
	if c.Given("timeout") {
		out = append(out, "--timeout", c.timeout.String())
	}

	return append(out, c.Arguments()...)
}

// checkRevision returns an error if the revision never existed. It accepts revisions older than the stored ones.
func checkRevision(ctx context.Context, store *Store, key string, revision uint64) error {
	all, err := store.History(ctx, key)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return store.NotAssigned(ctx, key)
	case err != nil || len(all) == 0 || revision < all[0].Revision:
		return err
	}
	_, err = assign.FindRevision(all, revision)

	return err
}

// Wait waits until nodes run the assignments of a goal.
type Wait struct {
	*cli.Env
	assign.Goal
	// Timeout limits the wait; 0 checks once.
	Timeout time.Duration
	// Quiet leaves the printing of the statuses to the caller.
	Quiet bool
	// LeaveUnreachable is the option of assign.Waiter.
	LeaveUnreachable bool
	// Again are the words after muster that wait for the same goal, for a user who interrupts the wait.
	Again []string

	store *Store
	line  *print.Progress
	// isAway is set while a reported outage of NATS lasts.
	isAway  bool
	remarks assign.WaitRemarks
	// warned are the printed warnings about states that the server does not store.
	warned map[string]bool
	// isChecked is set after checkStored, isFailing after it confirmed that states are not stored, isDoubtful also after a
	// guess.
	isChecked, isFailing, isDoubtful bool
}

// Run waits, prints the statuses and returns them. The error describes the nodes that do not run the assignments, or the
// revision that replaced them.
func (w *Wait) Run(ctx context.Context, s *Store) ([]view.Assignment, error) {
	w.store, w.line, w.warned = s, w.Print.Progress(), map[string]bool{}
	w.remarks.Timeout = w.Timeout
	defer w.line.Clear()
	waiter := assign.Waiter{
		Nodes: s, LeaveUnreachable: w.LeaveUnreachable,
		MayLeave: func(ctx context.Context) bool {
			w.checkStored(ctx)
			return !w.isFailing // otherwise the agents of unreachable nodes may run
		},
		IsTransient: kvstore.IsOutage,
		OnOutage:    w.sayOutage,
		OnPoll: func(all []fleet.RolloutStatus) {
			w.isAway = false
			if text := w.remarks.Next(all); text != "" && !w.LeaveUnreachable {
				w.say(text)
			}
			w.line.Show("%s", assign.WaitProgress(w.Name, all))
		},
	}
	found, err := waiter.Reach(ctx, s, w.Goal, w.Timeout)
	w.line.Clear()
	if err != nil {
		return nil, err
	}
	// If LeaveUnreachable has just ended the wait, the storage was checked.
	if ctx.Err() == nil && (!w.isChecked || w.isFailing) && slices.ContainsFunc(found.Statuses, isOpen) {
		w.checkStored(ctx)
	}
	assigned := fleet.NewAssigned(found.Rollout.Entries)
	all := make([]view.Assignment, len(found.Statuses))
	for i, status := range found.Statuses {
		all[i] = view.Assignment{RolloutStatus: status, Assigned: assigned.Assigned(status.Key)}
	}
	if !w.Quiet {
		printStatuses(w.Print, all, time.Now())
		printTally(w.Print, fleet.TallyOf(found.Statuses))
	}
	switch {
	case found.Replaced != nil:
		return all, found.Replaced
	case len(all) == 0:
		return all, w.nobody(s.KV.Names, found.Rollout)
	case fleet.TallyOf(found.Statuses).Targets == 0:
		return all, appliesNowhere(w.Name, s.KV.Names, found.Statuses)
	default:
		return all, assign.Verdict{
			Name: w.Name, Timeout: w.Timeout, TimedOut: found.TimedOut, LeaveUnreachable: w.LeaveUnreachable,
			IsFailing: w.isFailing, IsDoubtful: w.isDoubtful, Run: s.KV.Names.Run, Again: shellquote.Join(w.Again...),
		}.Err(ctx, found.Statuses)
	}
}

// say prints a remark about the goal.
func (w *Wait) say(text string) {
	w.line.Clear()
	w.Print.Remark("%s: %s", w.Name, text)
}

// printStatuses prints the nodes that are not up to date, or on which something flaps.
func printStatuses(p print.Printer, statuses []view.Assignment, now time.Time) {
	var rows [][]string
	for _, s := range statuses {
		if s.Status == fleet.StatusUpToDate && s.Reason == "" {
			continue
		}
		current, late := "-", ""
		if s.Current > 0 {
			current = strconv.FormatUint(s.Current, 10)
		}
		if s.Late() {
			late = print.Age(s.Assigned, now)
		}
		rows = append(rows, []string{s.Node, s.Key, string(s.Status), strconv.FormatUint(s.Desired, 10), current, late, print.OneLine(s.Reason)})
	}
	if len(rows) > 0 {
		p.Table([]string{"NODE", "KEY", "STATUS", "DESIRED", "CURRENT", "LATE FOR", "REASON"}, rows, "")
	}
}

// printTally counts the nodes that are up to date.
func printTally(p print.Printer, t fleet.Tally) {
	switch {
	case t.Targets > 0:
		p.Printf("%d/%d nodes up to date\n", t.UpToDate, t.Targets)
	case t.All > 0:
		p.Printf("not applicable on any of %s\n", print.Count(t.All, "node"))
	}
}

// nobody returns the error of a goal without nodes: none of the selected, or of the known nodes, is a target.
func (w *Wait) nobody(names kvstore.Names, r fleet.Rollout) error {
	where := names.Run("fleet ls " + w.Name)
	if len(w.Nodes) > 0 {
		nodes := print.Some(slices.Sorted(maps.Keys(w.Nodes)), names.Run("fleet nodes")+" has all")
		if len(w.Keys) > 0 {
			return fmt.Errorf("%s is not assigned to %s", print.Some(w.Keys, where), nodes)
		}
		return fmt.Errorf("%s is not assigned to %s (it is for %s)", w.Name, nodes, waitTargets(r, where))
	}

	return fmt.Errorf("no known node matches: %s, which is for %s (see %s)", w.Name, waitTargets(r, where), names.Run("fleet nodes"))
}

// waitTargets lists the targets of the assignments in the rollout.
func waitTargets(r fleet.Rollout, where string) string {
	var out []string
	for _, e := range r.Entries {
		if t, _, err := fleet.ParseKey(e.Key); err == nil && (len(r.Keys) == 0 || slices.Contains(r.Keys, e.Key)) {
			out = append(out, t.String())
		}
	}
	slices.Sort(out)

	return print.Some(out, where)
}
