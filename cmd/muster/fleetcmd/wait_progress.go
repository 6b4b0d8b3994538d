package fleetcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
)

// maxNamedNodes is how many nodes of one status are named.
const maxNamedNodes = 3

// notUpToDate counts the nodes that are not up to date by their status, and names some of each.
func notUpToDate(statuses []fleet.RolloutStatus) string {
	return byStatus(statuses, fleet.StatusFailed, fleet.StatusRejected, fleet.StatusUnreachable, fleet.StatusUnreadable, fleet.StatusPaused, fleet.StatusPending)
}

// statusOf returns the status of a node for counts: a pending node that is paused is paused.
func statusOf(s fleet.RolloutStatus) fleet.Status {
	if s.Paused != nil {
		return fleet.StatusPaused
	}

	return s.Status
}

// remainder names the kinds of nodes that alone are waited for and do not run the revision soon: unreachable and
// paused nodes. It is empty if no node is waited for, or if others remain.
func remainder(statuses []fleet.RolloutStatus) string {
	counts := map[fleet.Status]int{}
	for _, s := range statuses {
		counts[statusOf(s)]++
	}
	unreachable, paused := counts[fleet.StatusUnreachable] > 0, counts[fleet.StatusPaused] > 0
	switch {
	case counts[fleet.StatusPending]+counts[fleet.StatusUnreadable] > 0:
		return ""
	case unreachable && paused:
		return "unreachable or paused"
	case unreachable:
		return "unreachable"
	case paused:
		return "paused"
	default:
		return ""
	}
}

// byStatus counts the nodes that have some statuses, and names some of each.
func byStatus(statuses []fleet.RolloutStatus, which ...fleet.Status) string {
	nodes := map[fleet.Status][]string{}
	for _, s := range statuses {
		nodes[statusOf(s)] = append(nodes[statusOf(s)], s.Node)
	}
	var parts []string
	for _, status := range which {
		if n := len(nodes[status]); n > 0 {
			named := strings.Join(nodes[status][:min(n, maxNamedNodes)], ", ")
			if n > maxNamedNodes {
				named += ", …"
			}
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, status, named))
		}
	}

	return strings.Join(parts, ", ")
}

// progress is the line at a terminal while nodes are waited for: how many are up to date, and
// whom it waits for.
func progress(name string, statuses []fleet.RolloutStatus) string {
	t := fleet.TallyOf(statuses)
	text := fmt.Sprintf("%s: %d/%d nodes up to date", name, t.UpToDate, t.Targets)
	if t.Failed > 0 {
		text += fmt.Sprintf(", %d failed", t.Failed)
	}
	if t.Rejected > 0 {
		text += fmt.Sprintf(", %d rejected", t.Rejected)
	}
	waiting, only := byStatus(statuses, fleet.StatusPending, fleet.StatusUnreadable, fleet.StatusUnreachable, fleet.StatusPaused), remainder(statuses)
	switch {
	case waiting == "":
		return text
	case only != "":
		return text + ", only " + only + " nodes remain: " + waiting
	default:
		return text + ", waiting for " + waiting
	}
}

// appliesNowhere returns the error of a manifest that applies to none of its nodes.
func appliesNowhere(name string, names kvstore.Names, statuses []fleet.RolloutStatus) error {
	hint := "see " + names.Run("fleet group NODE --order")
	if !slices.ContainsFunc(statuses, func(s fleet.RolloutStatus) bool { return s.Status == fleet.StatusOverridden }) {
		hint = "check its condition, see " + names.Run("fleet facts NODE")
	}

	return fmt.Errorf("%s applies to none of %s: %s (%s)", name, print.Count(len(statuses), "node"), byStatus(statuses, fleet.StatusOverridden, fleet.StatusNotApplicable), hint)
}

// notes are the remarks during a wait: that nodes are unreachable or paused, and that only such nodes remain. Each is
// printed once.
type notes struct {
	timeout         time.Duration
	some, onlyThose bool
}

// next returns what to say by the statuses of a poll, empty for nothing.
func (n *notes) next(statuses []fleet.RolloutStatus) string {
	away := byStatus(statuses, fleet.StatusUnreachable, fleet.StatusPaused)
	if away == "" || n.timeout <= 0 {
		return ""
	}
	switch only := remainder(statuses); {
	case only != "" && !n.onlyThose:
		n.some, n.onlyThose = true, true
		return fmt.Sprintf("only %s nodes remain: %s, waiting for at most %s; ctrl-C ends it", only, away, n.timeout)
	case !n.some:
		n.some = true
		return away + ", waiting for all"
	default:
		return ""
	}
}

// outagePause is the pause before what failed in an outage of NATS is tried again.
const outagePause = 500 * time.Millisecond

// outage lets a wait go on over outages of NATS, each of which it says once.
type outage struct {
	print.Printer
	line *print.Progress
	name string
	// isAway is that one was said and is not over.
	isAway bool
}

// newOutage returns what says outages while name is waited for.
func newOutage(p print.Printer, name string) *outage {
	return &outage{Printer: p, line: p.Progress(), name: name}
}

// isTransient reports whether an error may pass by itself, and there is time for that.
func (o *outage) isTransient(limit context.Context, err error) bool {
	is := kvstore.IsOutage(err) && limit.Err() == nil
	if is && !o.isAway {
		o.line.Clear()
		o.Remark("%s: NATS does not answer, still waiting (%v)", o.name, cli.Plain(err))
	}
	o.isAway = is

	return is
}

// again calls f until its error is none that may pass by itself. The error is the last one.
func (o *outage) again(limit context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			o.isAway = false
			return nil
		}
		if !o.isTransient(limit, err) {
			return err
		}
		select {
		case <-limit.Done():
			return err
		case <-time.After(outagePause):
		}
	}
}

// storage checks during a wait whether the server stores the states of nodes, and warns if it does not.
type storage struct {
	store *Store
	// warn prints a warning.
	warn func(text string)
	// warned are the printed warnings.
	warned map[string]bool
	// found is the result of the last check, nil before the first one.
	found *fleet.Unstored
	// isFailing is set after a check confirmed that states are not stored, isDoubtful also after a guess.
	isFailing, isDoubtful bool
}

// check asks the server and nodes, and prints each warning once. It does nothing if the nodes cannot be read.
func (c *storage) check(ctx context.Context) {
	nodes, err := c.store.Nodes(ctx)
	if err != nil {
		return // the statuses are shown
	}
	found := c.store.Unstored(ctx, nodes)
	c.found = &found
	c.isFailing = c.isFailing || !found.Since.IsZero()
	c.isDoubtful = c.isDoubtful || found.States != ""
	for _, text := range found.Lines() {
		if !c.warned[text] {
			c.warned[text] = true
			c.warn("the statuses may be old: " + text)
		}
	}
}

// mayLeave checks whether unreachable nodes may be left: their states are stored, so their agents do not run.
func (c *storage) mayLeave(ctx context.Context) bool {
	c.check(ctx)

	return !c.isFailing
}

// conclude checks the statuses at the end of a wait if some nodes are pending or unreachable, unless mayLeave has just
// ended the wait.
func (c *storage) conclude(ctx context.Context, statuses []fleet.RolloutStatus) {
	isOpen := func(one fleet.RolloutStatus) bool {
		return one.Status == fleet.StatusPending || one.Status == fleet.StatusUnreachable
	}
	hasJustChecked := c.found != nil && !c.isFailing
	if ctx.Err() == nil && !hasJustChecked && slices.ContainsFunc(statuses, isOpen) {
		c.check(ctx)
	}
}
