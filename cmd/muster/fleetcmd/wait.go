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

// waitCommand is muster fleet wait.
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
	g := Goal{Name: c.name}
	if IsKey(c.name) {
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
	statuses, waited := Wait{Env: c.Env, Timeout: c.timeout, Quiet: c.IsDocument(), Again: c.again()}.Run(ctx, store, g)
	if c.IsDocument() && statuses != nil {
		if err := c.Print.Document(statuses, c.YAML); err != nil {
			return err
		}
	}

	return errors.Join(waited, undecided)
}

// again returns the words after muster that wait for the same.
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

// checkRevision returns the error of a revision that never existed. One before those that are kept may
// have.
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

// Goal is the assignments of a name that are waited for.
type Goal struct {
	Name string
	// Keys are those of the assignments, none for all.
	Keys []string
	// Nodes are those that are waited for; nil are all.
	Nodes map[string]bool
	// Revisions are those of keys where it is not the newest.
	Revisions map[string]uint64
	// InForce is that these revisions must stay what is assigned: a later one that assigns something else is an
	// error, and not waited for.
	InForce bool
}

// rollout returns the selected assignments, and those of the same name that may
// apply to a node instead.
func (g Goal) rollout(ctx context.Context, s *Store) (fleet.Rollout, error) {
	entries, err := s.Named(ctx, nil, g.Name)
	if err != nil {
		return fleet.Rollout{}, err
	}
	at := func(key string) int {
		return slices.IndexFunc(entries, func(e model.Entry) bool { return e.Key == key })
	}
	for key, revision := range g.Revisions {
		i := at(key)
		if i < 0 {
			entries = append(entries, model.Entry{Key: key})
			i = len(entries) - 1
		}
		if entries[i].Revision == revision {
			continue
		}
		digests, err := s.Digests(ctx, key)
		if err != nil {
			return fleet.Rollout{}, err
		}
		entries[i].Revision, entries[i].Digest, entries[i].Time = revision, digests[revision], time.Time{}
	}
	for _, key := range g.Keys {
		if at(key) < 0 {
			return fleet.Rollout{}, s.NotAssigned(ctx, key)
		}
	}
	if len(entries) == 0 {
		return fleet.Rollout{}, s.NotAssigned(ctx, g.Name)
	}

	return fleet.Rollout{Entries: entries, Keys: g.Keys, Nodes: g.Nodes}, nil
}

// Wait waits for a goal.
type Wait struct {
	*cli.Env
	// Timeout is how long at most; 0 checks once.
	Timeout time.Duration
	// Quiet leaves the printing of the statuses to the caller.
	Quiet bool
	// LeaveUnreachable is source.Waiter.LeaveUnreachable.
	LeaveUnreachable bool
	// Again are the words after muster that wait for the same, for somebody who interrupts it.
	Again []string
}

// Run waits, prints the statuses, and returns the error of them: that nodes do not run what is
// waited for, that it failed there, or that it was replaced.
func (w Wait) Run(ctx context.Context, s *Store, g Goal) ([]view.Assignment, error) {
	limit, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	if w.Timeout <= 0 {
		cancel() // so that no outage is waited for
	}
	away := newOutage(w.Print, g.Name)
	var rollout fleet.Rollout
	err := away.again(limit, func() (err error) {
		rollout, err = g.rollout(ctx, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	stored := &storage{store: s, warned: map[string]bool{}, warn: func(text string) {
		away.line.Clear()
		w.Print.Remark("%s: %s", g.Name, text)
	}}
	statuses, err := w.poll(ctx, limit, stored, g, rollout, away)
	timedOut := limit.Err() != nil
	if err == nil && ctx.Err() == nil && slices.ContainsFunc(statuses, isLate) {
		err = away.again(limit, func() error { return g.replaced(ctx, s) })
	}
	// Where NATS is away at the end the statuses are known, if not what was replaced, or why one is skipped.
	isUnknown := func(err error) bool { return len(statuses) > 0 && (kvstore.IsOutage(err) || ctx.Err() != nil) }
	var replaced *replacedError
	if errors.As(err, &replaced) && len(statuses) > 0 || isUnknown(err) {
		err = nil
	}
	if err == nil {
		if err = away.again(limit, func() error { return fleet.ExplainSkipped(ctx, s.Get, statuses) }); isUnknown(err) {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	stored.conclude(ctx, statuses)
	assigned := fleet.NewAssigned(rollout.Entries)
	all := make([]view.Assignment, len(statuses))
	for i, status := range statuses {
		all[i] = view.Assignment{RolloutStatus: status, Assigned: assigned.Assigned(status.Key)}
	}
	if !w.Quiet {
		printStatuses(w.Print, all, time.Now())
		printTally(w.Print, fleet.TallyOf(statuses))
	}
	if replaced != nil {
		return all, replaced
	}
	if len(statuses) == 0 {
		return all, g.nobody(s.KV.Names(), rollout)
	}

	return all, w.verdict(ctx, stored, g.Name, timedOut, statuses)
}

// poll polls the nodes until they settled or the limit ended, and returns the last statuses.
func (w Wait) poll(ctx, limit context.Context, stored *storage, g Goal, rollout fleet.Rollout, away *outage) ([]fleet.RolloutStatus, error) {
	if w.Timeout <= 0 {
		limit = ctx
	}
	absent := notes{timeout: w.Timeout}
	s := stored.store
	waiter := assign.Waiter{
		Nodes: &watched{Store: s, goal: g}, Once: w.Timeout <= 0, LeaveUnreachable: w.LeaveUnreachable, MayLeave: stored.mayLeave, Later: s.Digests,
		IsTransient: func(err error) bool { return away.isTransient(limit, err) },
		OnPoll: func(all []fleet.RolloutStatus) {
			away.isAway = false
			if text := absent.next(all); text != "" && limit.Err() == nil && !w.LeaveUnreachable {
				stored.warn(text)
			}
			away.line.Show("%s", progress(g.Name, all))
		},
	}
	defer away.line.Clear()

	return waiter.Wait(limit, rollout)
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
func (w Wait) verdict(ctx context.Context, stored *storage, name string, timedOut bool, statuses []fleet.RolloutStatus) error {
	names := stored.store.KV.Names()
	switch t := fleet.TallyOf(statuses); {
	case t.Targets == 0:
		return appliesNowhere(name, names, statuses)
	case t.NotUpToDate() > 0 && t.NotUpToDate() == t.Rejected:
		return fmt.Errorf("%s was rejected by %d of %d nodes", name, t.Rejected, t.Targets)
	case t.NotUpToDate() > 0 && t.NotUpToDate() == t.Failed:
		first := statuses[slices.IndexFunc(statuses, func(s fleet.RolloutStatus) bool { return s.Status == fleet.StatusFailed })]
		return fmt.Errorf("%s failed on %d of %d nodes (see %s)", name, t.Failed, t.Targets, names.Run("fleet reports --node "+first.Node+" --outcome failed --no-follow"))
	case t.Open() > 0 && ctx.Err() != nil:
		return fmt.Errorf("%w: %s is not up to date on %d of %d nodes: %s (they go on by themselves, see: %s)", context.Cause(ctx), name, t.NotUpToDate(), t.Targets, notUpToDate(statuses), names.Run(shellquote.Join(w.Again...)))
	case remainder(statuses) != "" && (t.Rejected == 0 || !timedOut) && w.LeaveUnreachable && !stored.isFailing && ctx.Err() == nil:
		return fmt.Errorf("%s is not up to date on %d of %d nodes: %s%s%s; %s", name, t.NotUpToDate(), t.Targets, notUpToDate(statuses), unreachableHint(stored, statuses), rejectedHint(t), later(remainder(statuses), names.Run("fleet wait "+name)))
	case t.NotUpToDate() > 0 && !timedOut:
		return fmt.Errorf("%s is not up to date on %d of %d nodes: %s%s", name, t.NotUpToDate(), t.Targets, notUpToDate(statuses), rejectedHint(t))
	case t.NotUpToDate() > 0:
		return fmt.Errorf("%s is not up to date on %d of %d nodes after %s: %s%s", name, t.NotUpToDate(), t.Targets, w.Timeout, notUpToDate(statuses), unreachableHint(stored, statuses))
	default:
		return nil
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

// unreachableHint names the remedy where the first node that is unreachable never comes back;
// empty for none. While states are not stored, a node that runs counts as unreachable.
func unreachableHint(stored *storage, statuses []fleet.RolloutStatus) string {
	i := slices.IndexFunc(statuses, func(s fleet.RolloutStatus) bool { return s.Status == fleet.StatusUnreachable })
	if i < 0 {
		return ""
	}
	if stored.isDoubtful {
		return "; their states may be old, because the NATS server stored no states"
	}
	s, names := statuses[i], stored.store.KV.Names()
	remedy := names.Run("fleet forget " + s.Node)
	if t, _, err := fleet.ParseKey(s.Key); err == nil && t.Node != "" {
		remedy = names.Run("fleet rm " + s.Key)
	}

	return fmt.Sprintf("; if %s is gone for good: %s", s.Node, remedy)
}

const (
	// replacedEvery is the pause between two checks of what is assigned, and checksPerPause bounds what
	// part of the time they take.
	replacedEvery  = time.Second
	checksPerPause = 20
)

// replacedError is a revision that another one replaced, so that it is not in force.
type replacedError struct {
	revision uint64
	by       model.Entry
}

// Error names both, and who wrote the later one.
func (r *replacedError) Error() string {
	what := "was replaced by revision"
	if r.by.Deleted {
		what = "was removed with revision"
	}
	text := fmt.Sprintf("%s revision %d %s %d", r.by.Key, r.revision, what, r.by.Revision)
	if r.by.By != "" {
		text += " of " + print.OneLine(r.by.By)
	}

	return text
}

// replaced returns the error of the first revision that must be in force and was replaced, or that of reading.
func (g Goal) replaced(ctx context.Context, s *Store) error {
	if !g.InForce {
		return nil
	}
	for _, key := range g.Keys {
		e, err := s.Get(ctx, key)
		switch {
		case err == nil && e.Revision == g.Revisions[key]:
			continue
		case err != nil && !errors.Is(err, model.ErrNotFound):
			return err
		}
		all, err := s.History(ctx, key)
		if err != nil && !errors.Is(err, model.ErrNotFound) {
			return err
		}
		if by, is := assign.Replacement(all, g.Revisions[key]); is {
			return &replacedError{g.Revisions[key], by}
		}
	}

	return nil
}

// watched lists nodes, and checks now and then that a goal was not replaced.
type watched struct {
	*Store
	goal Goal
	next time.Time
}

// Nodes returns all nodes, or the error that the goal was replaced.
func (w *watched) Nodes(ctx context.Context) ([]model.Node, error) {
	if began := time.Now(); !began.Before(w.next) {
		if err := w.goal.replaced(ctx, w.Store); err != nil {
			return nil, err
		}
		w.next = time.Now().Add(max(replacedEvery, checksPerPause*time.Since(began)))
	}

	return w.Store.Nodes(ctx)
}

// isLate reports whether a status is not that of the revision itself: the goal may have been replaced.
func isLate(s fleet.RolloutStatus) bool {
	return s.Status != fleet.StatusUpToDate || s.Current != s.Desired
}

// nobody returns the error of a goal that is for none of the nodes: of those that were selected, or of
// all that are known.
func (g Goal) nobody(names kvstore.Names, r fleet.Rollout) error {
	where := names.Run("fleet ls " + g.Name)
	if len(g.Nodes) > 0 {
		nodes := print.Some(slices.Sorted(maps.Keys(g.Nodes)), names.Run("fleet nodes")+" has all")
		if len(g.Keys) > 0 {
			return fmt.Errorf("%s is not assigned to %s", print.Some(g.Keys, where), nodes)
		}
		return fmt.Errorf("%s is not assigned to %s (it is for %s)", g.Name, nodes, waitTargets(r, where))
	}

	return fmt.Errorf("no known node matches: %s, which is for %s (see %s)", g.Name, waitTargets(r, where), names.Run("fleet nodes"))
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
