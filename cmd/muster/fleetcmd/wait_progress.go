package fleetcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
)

// maxNamedNodes is the maximum number of named nodes of one status.
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

// remainder returns "unreachable", "paused" or both if the wait is only for such nodes, and otherwise an empty string.
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

// byStatus counts the nodes of each given status, and names the first ones.
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

// progress returns the progress line: the number of nodes up to date, and the nodes of the wait.
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

// remark returns a remark about the statuses of a poll: that nodes are unreachable or paused, and that only such nodes
// remain. It returns each once, else an empty text.
func (w *Wait) remark(statuses []fleet.RolloutStatus) string {
	away := byStatus(statuses, fleet.StatusUnreachable, fleet.StatusPaused)
	if away == "" || w.Timeout <= 0 {
		return ""
	}
	switch only := remainder(statuses); {
	case only != "" && !w.hasFinalRemark:
		w.hasRemark, w.hasFinalRemark = true, true
		return fmt.Sprintf("only %s nodes remain: %s, waiting for at most %s; ctrl-C ends it", only, away, w.Timeout)
	case !w.hasRemark:
		w.hasRemark = true
		return away + ", waiting for all"
	default:
		return ""
	}
}

// sayOutage prints a remark once for each outage of NATS.
func (w *Wait) sayOutage(err error) {
	if !w.isAway {
		w.isAway = true
		w.say(fmt.Sprintf("NATS does not answer, still waiting (%v)", cli.Plain(err)))
	}
}

// isOpen reports whether a node may still run the revision.
func isOpen(s fleet.RolloutStatus) bool {
	return s.Status == fleet.StatusPending || s.Status == fleet.StatusUnreachable
}

// checkStored checks whether the server stores the states of nodes, and prints each warning once. It does nothing if the
// nodes cannot be read.
func (w *Wait) checkStored(ctx context.Context) {
	nodes, err := w.store.Nodes(ctx)
	if err != nil {
		return // the statuses are shown
	}
	found := w.store.Unstored(ctx, nodes)
	w.isChecked = true
	w.isFailing = w.isFailing || !found.Since.IsZero()
	w.isDoubtful = w.isDoubtful || found.States != ""
	for _, text := range found.Lines() {
		if !w.warned[text] {
			w.warned[text] = true
			w.say("the statuses may be old: " + text)
		}
	}
}
