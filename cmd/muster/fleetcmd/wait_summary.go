package fleetcmd

import (
	"fmt"
	"slices"
	"strings"

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
