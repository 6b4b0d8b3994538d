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
	isAway bool
	// hasRemark and hasFinalRemark are set after the remarks about unreachable and paused nodes, see remark.
	hasRemark, hasFinalRemark bool
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
			if text := w.remark(all); text != "" && !w.LeaveUnreachable {
				w.say(text)
			}
			w.line.Show("%s", progress(w.Name, all))
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
	default:
		return all, w.verdict(ctx, found.TimedOut, found.Statuses)
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

// verdict returns the error of a wait. timedOut reports whether it took the whole timeout.
func (w *Wait) verdict(ctx context.Context, timedOut bool, statuses []fleet.RolloutStatus) error {
	names, t, only := w.store.KV.Names, fleet.TallyOf(statuses), remainder(statuses)
	outdated := fmt.Sprintf("%s is not up to date on %d of %d nodes", w.Name, t.NotUpToDate(), t.Targets)
	switch {
	case t.Targets == 0:
		return appliesNowhere(w.Name, names, statuses)
	case t.NotUpToDate() == 0:
		return nil
	case t.NotUpToDate() == t.Rejected:
		return fmt.Errorf("%s was rejected by %d of %d nodes", w.Name, t.Rejected, t.Targets)
	case t.NotUpToDate() == t.Failed:
		first := statuses[slices.IndexFunc(statuses, func(s fleet.RolloutStatus) bool { return s.Status == fleet.StatusFailed })]
		return fmt.Errorf("%s failed on %d of %d nodes (see %s)", w.Name, t.Failed, t.Targets, names.Run("fleet reports --node "+first.Node+" --outcome failed --no-follow"))
	case t.Open() > 0 && ctx.Err() != nil:
		return fmt.Errorf("%w: %s: %s (they continue; see: %s)", context.Cause(ctx), outdated, notUpToDate(statuses), names.Run(shellquote.Join(w.Again...)))
	case only != "" && (t.Rejected == 0 || !timedOut) && w.LeaveUnreachable && !w.isFailing && ctx.Err() == nil:
		return fmt.Errorf("%s: %s%s%s; %s", outdated, notUpToDate(statuses), w.unreachableHint(statuses), rejectedHint(t), later(only, names.Run("fleet wait "+w.Name)))
	case !timedOut:
		return fmt.Errorf("%s: %s%s", outdated, notUpToDate(statuses), rejectedHint(t))
	default:
		return fmt.Errorf("%s after %s: %s%s", outdated, w.Timeout, notUpToDate(statuses), w.unreachableHint(statuses))
	}
}

// rejectedHint names the remedy for rejected revisions, empty for none.
func rejectedHint(t fleet.Tally) string {
	if t.Rejected == 0 {
		return ""
	}

	return "; rejected nodes need another push"
}

// later explains when nodes apply a push that did not wait for them; only is the result of remainder.
// wait is the command that waits for them.
func later(only, wait string) string {
	when := map[string]string{
		"unreachable": "when they reconnect", "paused": "when their pause ends", "unreachable or paused": "when they reconnect or their pause ends",
	}

	return fmt.Sprintf("%s nodes apply it %s, %s waits for them", only, when[only], wait)
}

// unreachableHint returns the remedy for an unreachable node that never returns, empty without one. While the server
// does not store states, running nodes count as unreachable.
func (w *Wait) unreachableHint(statuses []fleet.RolloutStatus) string {
	i := slices.IndexFunc(statuses, func(s fleet.RolloutStatus) bool { return s.Status == fleet.StatusUnreachable })
	if i < 0 {
		return ""
	}
	if w.isDoubtful {
		return "; their states may be old, because the NATS server stored no states"
	}
	s, names := statuses[i], w.store.KV.Names
	remedy := names.Run("fleet forget " + s.Node)
	if t, _, err := fleet.ParseKey(s.Key); err == nil && t.Node != "" {
		remedy = names.Run("fleet rm " + s.Key)
	}

	return fmt.Sprintf("; if %s is gone for good: %s", s.Node, remedy)
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
