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

// remedy is what to do where a server does not store messages.
const remedy = "check its free disk space and /healthz"

const (
	// publishTime is how long a node takes at most to publish a report.
	publishTime = 5 * time.Second
	// quietTime is how long a stream stores nothing before that is suspicious; less for nodes with a short state_ttl.
	quietTime = 30 * time.Second
	// quietPart is which part of the state_ttl that is.
	quietPart = 10
	// maxAsked is how many nodes are asked whether their states are stored.
	maxAsked = 3
)

// isQuiet reports whether the stream stored nothing for a suspicious time, by the state_ttl of a node.
func (l LastStored) isQuiet(ttl time.Duration) bool {
	quiet := quietTime
	if ttl > 0 {
		quiet = min(quiet, ttl/quietPart)
	}

	return l.Now.Sub(l.At) > quiet
}

// UnstoredReports returns why reports are probably not stored, empty if they are: nodes store that reports wait after the
// stream of reports stored its last message.
func UnstoredReports(l LastStored, nodes iter.Seq[*model.Node]) string {
	waiting, first := 0, ""
	for n := range nodes {
		if n.Outbox > 0 && n.Heard.After(l.At) && l.Now.Sub(n.Heard) > publishTime && l.isQuiet(n.SilentAfter.Std()) && !n.Stopped() {
			if waiting++; waiting == 1 {
				first = n.Node
			}
		}
	}
	if waiting == 0 {
		return ""
	}

	return fmt.Sprintf("the NATS server %s stores no reports since %s (nodes with waiting reports: %d, first %s): %s", l.Server, at(l.At), waiting, first, remedy)
}

// UnstoredStates are nodes that stored no state for a suspicious time.
type UnstoredStates struct {
	LastStored
	// Ask has nodes to ask for the reason, none if nothing is suspicious.
	Ask []string
	// isOverdue is set when all of them should have stored their states again.
	isOverdue bool
}

// FindUnstoredStates looks for the nodes that were reachable when the last state was stored.
func FindUnstoredStates(l LastStored, nodes iter.Seq[*model.Node]) UnstoredStates {
	out := UnstoredStates{LastStored: l}
	var found []*model.Node
	shortest := time.Duration(0)
	for n := range nodes {
		if ttl := n.SilentAfter.Std(); ttl > 0 && !n.Stopped() && n.Unreadable == "" && !n.IsSilent(l.At) {
			found = append(found, n)
			if shortest == 0 || ttl < shortest {
				shortest = ttl
			}
		}
	}
	if len(found) == 0 || !l.isQuiet(shortest) {
		return out
	}
	slices.SortFunc(found, func(a, b *model.Node) int { return cmp.Or(b.Heard.Compare(a.Heard), cmp.Compare(a.Node, b.Node)) })
	for _, n := range found[:min(len(found), maxAsked)] {
		out.Ask = append(out.Ask, n.Node)
	}
	// A heartbeat is at most half of the state_ttl, give or take a tenth.
	out.isOverdue = l.Now.Sub(l.At) > shortest*2/3

	return out
}

// Reason returns why states are not stored, as a node answered.
func (u UnstoredStates) Reason(node, unstored string) string {
	return fmt.Sprintf("the NATS server %s stores no states of nodes since %s: %s; %s reports: %s", u.Server, at(u.At), remedy, node, unstored)
}

// Guess returns why states are probably not stored where no node can be asked, empty if they may be.
func (u UnstoredStates) Guess() string {
	if !u.isOverdue {
		return ""
	}

	return fmt.Sprintf("no node stored its state since %s: if agents run, the NATS server %s does not store states: %s", at(u.At), u.Server, remedy)
}

// at returns a time for people.
func at(t time.Time) string { return t.Local().Format(model.TimeFormat) }
