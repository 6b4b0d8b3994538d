package fleet

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// LastStored is when the server stored the last message of a stream, by its clock.
type LastStored struct {
	// Stream and Server are the names of the stream and the server that leads it.
	Stream, Server string
	// At is the time of the last message, Now the time of the answer.
	At, Now time.Time
}

// remedy is what to do where a server does not store messages. After a write error nats-server refuses messages until its
// restart, also when there is room again.
const remedy = "free disk space, check its /healthz, and restart the server if it still refuses writes"

const (
	// publishTime is how long a node takes at most to publish a report.
	publishTime = 5 * time.Second
	// quietTime is how long a stream stores nothing before that is suspicious; less if most nodes have a short state_ttl.
	quietTime = 30 * time.Second
	// quietPart is which part of the state_ttl that is.
	quietPart = 10
	// maxAsked is how many nodes are asked whether their states are stored.
	maxAsked = 3
	// maxWitnesses is how many nodes must report that the server does not store their messages. One node may lie.
	maxWitnesses = 2
)

// isQuiet reports whether the stream stored nothing for a suspicious time, by the usual state_ttl of nodes.
func (l LastStored) isQuiet(ttl time.Duration) bool {
	quiet := quietTime
	if ttl > 0 {
		quiet = min(quiet, ttl/quietPart)
	}

	return l.Now.Sub(l.At) > quiet
}

// reachableAt returns the nodes with a state_ttl that were reachable at a time, and the median of their state_ttl. One node
// cannot shorten the median, unless it is alone. Of two nodes the longer state_ttl counts.
func reachableAt(at time.Time, nodes iter.Seq[*model.Node]) (found []*model.Node, median time.Duration) {
	var ttls []time.Duration
	for n := range nodes {
		if ttl := n.SilentAfter.Std(); ttl > 0 && !n.Stopped() && n.Unreadable == "" && !n.IsSilent(at) {
			found, ttls = append(found, n), append(ttls, ttl)
		}
	}
	if len(ttls) > 0 {
		slices.Sort(ttls)
		median = ttls[len(ttls)/2]
	}

	return found, median
}

// witnesses returns how many of some reachable nodes must report a problem.
func witnesses(reachable int) int { return max(1, min(reachable, maxWitnesses)) }

// UnstoredReports returns why reports are probably not stored, empty if they are. Two reachable nodes, or the only one,
// must have stored that reports wait after the stream of reports stored its last message.
func UnstoredReports(l LastStored, nodes iter.Seq[*model.Node]) string {
	reachable, ttl := reachableAt(l.Now, nodes)
	known := map[string]bool{} // a waiting node counts even if it is silent, or it could outvote the others
	for _, n := range reachable {
		known[n.Node] = true
	}
	waiting, first := 0, ""
	for n := range nodes {
		if n.Outbox > 0 && n.Heard.After(l.At) && l.Now.Sub(n.Heard) > publishTime && !n.Stopped() {
			known[n.Node] = true
			if waiting++; waiting == 1 {
				first = n.Node
			}
		}
	}
	if waiting < witnesses(len(known)) || !l.isQuiet(ttl) {
		return ""
	}

	return fmt.Sprintf("the NATS server %s stores no reports since %s (nodes with waiting reports: %d, first %s): %s", l.Server, at(l.At), waiting, first, remedy)
}

// UnstoredStates are nodes that stored no state for a suspicious time.
type UnstoredStates struct {
	LastStored
	// Ask has nodes to ask for the reason, none if nothing is suspicious.
	Ask []string
	// Witnesses is how many of these nodes must report that their state is not stored.
	Witnesses int
	// isOverdue is set when all of them should have stored their states again.
	isOverdue bool
}

// FindUnstoredStates looks for the nodes that were reachable when the last state was stored.
func FindUnstoredStates(l LastStored, nodes iter.Seq[*model.Node]) UnstoredStates {
	out := UnstoredStates{LastStored: l}
	found, ttl := reachableAt(l.At, nodes)
	if len(found) == 0 || !l.isQuiet(ttl) {
		return out
	}
	out.Witnesses = witnesses(len(found))
	slices.SortFunc(found, func(a, b *model.Node) int { return cmp.Or(b.Heard.Compare(a.Heard), cmp.Compare(a.Node, b.Node)) })
	for _, n := range found[:min(len(found), maxAsked)] {
		out.Ask = append(out.Ask, n.Node)
	}
	// A heartbeat is at most half of the state_ttl, give or take a tenth.
	out.isOverdue = l.Now.Sub(l.At) > ttl/3*2

	return out
}

// Reason returns why states are not stored, as a node answered.
func (u UnstoredStates) Reason(node, unstored string) string {
	return fmt.Sprintf("the NATS server %s stores no states of nodes since %s: %s; %s reports: %s", u.Server, at(u.At), remedy, node, unstored)
}

// Guess returns why states are probably not stored without enough witnesses, empty if they may be.
func (u UnstoredStates) Guess() string {
	if !u.isOverdue {
		return ""
	}

	return fmt.Sprintf("no node stored its state since %s: if agents run, the NATS server %s does not store states: %s", at(u.At), u.Server, remedy)
}

// at returns a time for people.
func at(t time.Time) string { return t.Local().Format(model.TimeFormat) }
