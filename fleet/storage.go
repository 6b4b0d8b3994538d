package fleet

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// Storage reads the state of the streams from NATS.
type Storage interface {
	// SilentServers returns the NATS servers that do not answer the others, with the time of their last answer.
	SilentServers(ctx context.Context) (map[string]time.Time, error)
	// LastStored returns the times of the last stored node state and report.
	LastStored(ctx context.Context) (states, reports model.LastStored, err error)
	// IsAdministrator reports whether UnstoredReason may be called. UnstoredReason asks a node why its state is not
	// stored. It returns nothing if the node does not answer or its state is stored.
	IsAdministrator() bool
	UnstoredReason(ctx context.Context, node string) string
}

// Unstored describes the data that the server does not store.
type Unstored struct {
	// States and Reports are the reasons why states and reports are not stored, empty if they are.
	States, Reports string
	// Since is the time of the last stored state if enough nodes confirm that later ones are not stored.
	Since time.Time
	// Silent contains the silent NATS servers with the time of their last answer.
	Silent map[string]time.Time
	// LastReport is the time of the last stored report.
	LastReport time.Time
}

// Lines returns the reasons.
func (u Unstored) Lines() []string {
	var out []string
	for _, server := range slices.Sorted(maps.Keys(u.Silent)) {
		out = append(out, SilentServer(server, u.Silent[server]))
	}
	for _, text := range []string{u.States, u.Reports} {
		if text != "" {
			out = append(out, text)
		}
	}

	return out
}

// SilentServer returns a problem: a NATS server that is silent since a time.
func SilentServer(name string, since time.Time) string {
	return fmt.Sprintf("the server %s does not answer the other NATS servers since %s: check whether it runs and its /healthz, and restart it if it hangs", name, at(since))
}

// FindUnstored finds states and reports that the server does not store. Only administrators can ask nodes for
// the reason.
func FindUnstored(ctx context.Context, s Storage, nodes iter.Seq[*model.Node]) (out Unstored, err error) {
	if out.Silent, err = s.SilentServers(ctx); err != nil {
		return out, err
	}
	states, reports, err := s.LastStored(ctx)
	if err != nil {
		return out, err
	}
	out.LastReport = reports.At
	out.Reports = UnstoredReports(reports, nodes)
	suspicious := FindUnstoredStates(states, nodes)
	if !s.IsAdministrator() {
		out.States = suspicious.Guess()
		return out, nil
	}
	witnesses := 0
	for _, node := range suspicious.Ask {
		reason := s.UnstoredReason(ctx, node)
		if reason == "" {
			continue
		}
		if witnesses++; witnesses == suspicious.Witnesses {
			out.States, out.Since = suspicious.Reason(node, reason), states.At
			return out, nil
		}
	}
	if witnesses > 0 {
		out.States = suspicious.Guess()
	}

	return out, nil
}

// remedy is the remedy for a server that stores no messages. After a write error, nats-server refuses
// messages until its restart, even if there is room again.
const remedy = "free disk space, check its /healthz, and restart the server if it still refuses writes"

const (
	// publishTime limits the time in which a node publishes a report.
	publishTime = 5 * time.Second
	// quietTime is the time without a stored message that is suspicious. It is shorter if most nodes have a
	// short state_ttl.
	quietTime = 30 * time.Second
	// quietPart is the fraction of the state_ttl for that.
	quietPart = 10
	// maxAsked limits the nodes that are asked about their states.
	maxAsked = 3
	// maxWitnesses is the required number of nodes that report missing storage, because a single node may
	// lie.
	maxWitnesses = 2
)

// isQuiet reports whether the stream stored no message for a suspicious time, by the usual state_ttl of
// nodes.
func isQuiet(l model.LastStored, ttl time.Duration) bool {
	quiet := quietTime
	if ttl > 0 {
		quiet = min(quiet, ttl/quietPart)
	}

	return l.Now.Sub(l.At) > quiet
}

// reachableAt returns the nodes with a state_ttl that were reachable at a time, and the median of their
// state_ttl. A single node cannot shorten the median unless it is alone. Of two nodes the longer state_ttl
// counts.
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

func witnesses(reachable int) int { return max(1, min(reachable, maxWitnesses)) }

// UnstoredReports returns the probable reason why reports are not stored, empty if they are. Two reachable
// nodes, or the only one, must have reported waiting reports after the last stored report.
func UnstoredReports(l model.LastStored, nodes iter.Seq[*model.Node]) string {
	reachable, ttl := reachableAt(l.Now, nodes)
	known := map[string]bool{} // a node with waiting reports also counts if it is silent
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
	if waiting < witnesses(len(known)) || !isQuiet(l, ttl) {
		return ""
	}

	return fmt.Sprintf("the NATS server %s stores no reports since %s (nodes with waiting reports: %d, first %s): %s", l.Server, at(l.At), waiting, first, remedy)
}

// UnstoredStates describes a suspicious time without stored states.
type UnstoredStates struct {
	model.LastStored
	// Ask lists the nodes to ask for the reason, none if there is no suspicion.
	Ask []string
	// Witnesses is the required number of these nodes that report missing storage.
	Witnesses int
	// isOverdue means that all of them should have stored their states again.
	isOverdue bool
}

// FindUnstoredStates finds the nodes that were reachable when the last state was stored.
func FindUnstoredStates(l model.LastStored, nodes iter.Seq[*model.Node]) UnstoredStates {
	out := UnstoredStates{LastStored: l}
	found, ttl := reachableAt(l.At, nodes)
	if len(found) == 0 || !isQuiet(l, ttl) {
		return out
	}
	out.Witnesses = witnesses(len(found))
	slices.SortFunc(found, func(a, b *model.Node) int { return cmp.Or(b.Heard.Compare(a.Heard), cmp.Compare(a.Node, b.Node)) })
	for _, n := range found[:min(len(found), maxAsked)] {
		out.Ask = append(out.Ask, n.Node)
	}
	// The heartbeat interval is at most half of the state_ttl, plus a tenth.
	out.isOverdue = l.Now.Sub(l.At) > ttl/3*2

	return out
}

// Reason returns the reason from a node why states are not stored.
func (u UnstoredStates) Reason(node, unstored string) string {
	return fmt.Sprintf("the NATS server %s stores no states of nodes since %s: %s; %s reports: %s", u.Server, at(u.At), remedy, node, unstored)
}

// Guess returns the probable reason why states are not stored, without enough witnesses. It is empty if they
// may be stored.
func (u UnstoredStates) Guess() string {
	if !u.isOverdue {
		return ""
	}

	return fmt.Sprintf("no node stored its state since %s: if agents run, the NATS server %s does not store states: %s", at(u.At), u.Server, remedy)
}

func at(t time.Time) string { return t.Local().Format(model.TimeFormat) }
