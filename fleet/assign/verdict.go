package assign

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"
)

// Verdict is the result of a wait, for its error.
type Verdict struct {
	// Name is the name of the goal, and Timeout the limit of the wait.
	Name    string
	Timeout time.Duration
	// TimedOut reports whether the wait took the whole timeout.
	TimedOut bool
	// LeaveUnreachable is the option of the Waiter.
	LeaveUnreachable bool
	// IsFailing is set if the server does not store states, IsDoubtful also after a guess.
	IsFailing, IsDoubtful bool
	// Run returns the command line of a command, and Again waits for the same goal.
	Run   func(command string) string
	Again string
}

// Err returns nil if all nodes are up to date, and otherwise an error that counts the others.
func (w Verdict) Err(ctx context.Context, statuses []fleet.RolloutStatus) error {
	t, only := fleet.TallyOf(statuses), remainder(statuses)
	outdated := fmt.Sprintf("%s is not up to date on %d of %d nodes", w.Name, t.NotUpToDate(), t.Targets)
	switch {
	case t.NotUpToDate() == 0:
		return nil
	case t.NotUpToDate() == t.Rejected:
		return fmt.Errorf("%s was rejected by %d of %d nodes", w.Name, t.Rejected, t.Targets)
	case t.NotUpToDate() == t.Failed:
		first := statuses[slices.IndexFunc(statuses, func(s fleet.RolloutStatus) bool { return s.Status == fleet.StatusFailed })]
		return fmt.Errorf("%s failed on %d of %d nodes (see %s)", w.Name, t.Failed, t.Targets, w.Run("fleet reports --node "+first.Node+" --outcome failed --no-follow"))
	case t.Open() > 0 && ctx.Err() != nil:
		return fmt.Errorf("%w: %s: %s (they continue; see: %s)", context.Cause(ctx), outdated, notUpToDate(statuses), w.Run(w.Again))
	case only != "" && (t.Rejected == 0 || !w.TimedOut) && w.LeaveUnreachable && !w.IsFailing && ctx.Err() == nil:
		return fmt.Errorf("%s: %s%s%s; %s", outdated, notUpToDate(statuses), w.unreachableHint(statuses), rejectedHint(t), later(only, w.Run("fleet wait "+w.Name)))
	case !w.TimedOut:
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
func (w Verdict) unreachableHint(statuses []fleet.RolloutStatus) string {
	i := slices.IndexFunc(statuses, func(s fleet.RolloutStatus) bool { return s.Status == fleet.StatusUnreachable })
	if i < 0 {
		return ""
	}
	if w.IsDoubtful {
		return "; their states may be old, because the NATS server stored no states"
	}
	s := statuses[i]
	remedy := w.Run("fleet forget " + s.Node)
	if t, _, err := fleet.ParseKey(s.Key); err == nil && t.Node != "" {
		remedy = w.Run("fleet rm " + s.Key)
	}

	return fmt.Sprintf("; if %s is gone for good: %s", s.Node, remedy)
}

// maxNamedNodes is the maximum number of named nodes of one status.
const maxNamedNodes = 3

// notUpToDate counts the nodes that are not up to date by their status, and names some of each.
func notUpToDate(statuses []fleet.RolloutStatus) string {
	return ByStatus(statuses, fleet.StatusFailed, fleet.StatusRejected, fleet.StatusUnreachable, fleet.StatusUnreadable, fleet.StatusPaused, fleet.StatusPending)
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

// ByStatus counts the nodes of each given status, and names the first ones.
func ByStatus(statuses []fleet.RolloutStatus, which ...fleet.Status) string {
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

// WaitProgress returns the progress line: the number of nodes up to date, and the nodes of the wait.
func WaitProgress(name string, statuses []fleet.RolloutStatus) string {
	t := fleet.TallyOf(statuses)
	text := fmt.Sprintf("%s: %d/%d nodes up to date", name, t.UpToDate, t.Targets)
	if t.Failed > 0 {
		text += fmt.Sprintf(", %d failed", t.Failed)
	}
	if t.Rejected > 0 {
		text += fmt.Sprintf(", %d rejected", t.Rejected)
	}
	waiting, only := ByStatus(statuses, fleet.StatusPending, fleet.StatusUnreadable, fleet.StatusUnreachable, fleet.StatusPaused), remainder(statuses)
	switch {
	case waiting == "":
		return text
	case only != "":
		return text + ", only " + only + " nodes remain: " + waiting
	default:
		return text + ", waiting for " + waiting
	}
}

// WaitRemarks are the remarks during a wait.
type WaitRemarks struct {
	// Timeout limits the wait; 0 checks once.
	Timeout time.Duration

	// hasRemark and hasFinalRemark are set after the remarks about unreachable and paused nodes.
	hasRemark, hasFinalRemark bool
}

// Next returns a remark about the statuses of a poll: that nodes are unreachable or paused, and that only such nodes
// remain. It returns each once, else an empty text.
func (w *WaitRemarks) Next(statuses []fleet.RolloutStatus) string {
	away := ByStatus(statuses, fleet.StatusUnreachable, fleet.StatusPaused)
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
