package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is how a node behaves.
type Kind string

// The kinds. A node of each but KindSilent takes what is assigned to it and reports that it ran.
const (
	// KindStable is a node of which all runs succeed.
	KindStable Kind = "stable"
	// KindFailing is a node on which a resource of each manifest fails.
	KindFailing Kind = "failing"
	// KindDrifting is a node on which resources drift now and then, and are repaired.
	KindDrifting Kind = "drifting"
	// KindFlapping is a node on which something else changes a resource again and again.
	KindFlapping Kind = "flapping"
	// KindUnhealthy is a node with a health check that is critical now and then.
	KindUnhealthy Kind = "unhealthy"
	// KindLate is a node whose runs take minutes; requests do not.
	KindLate Kind = "late"
	// KindSilent is a node that runs what is assigned when it begins, and is not heard of again.
	KindSilent Kind = "silent"
	// KindSkewed is a node whose clock is wrong.
	KindSkewed Kind = "skewed"
	// KindOld is a node with an old version of muster.
	KindOld Kind = "old"
	// KindBacklog is a node with many reports in its outbox that it does not publish.
	KindBacklog Kind = "backlog"
	// KindHostile is a failing node that sends markup, control characters and very long lines.
	KindHostile Kind = "hostile"
)

// DefaultScenario has some of all kinds but KindHostile.
const DefaultScenario = "mixed"

// share is how many nodes of a scenario are of a kind: a part of them, and so many at least.
type share struct {
	kind  Kind
	part  float64
	least int
}

// scenarios returns the shares of each scenario by its name; all other nodes are stable.
func scenarios() map[string][]share {
	mixed := []share{
		{KindFailing, 0.03, 1}, {KindDrifting, 0.05, 2}, {KindSilent, 0.01, 1}, {KindFlapping, 0, 1}, {KindLate, 0, 1},
		{KindSkewed, 0, 1}, {KindOld, 0, 1}, {KindBacklog, 0, 1}, {KindUnhealthy, 0.01, 1},
	}

	return map[string][]share{
		"stable":        nil,
		DefaultScenario: mixed,
		"hostile":       append([]share{{KindHostile, 0.01, 1}}, mixed...),
	}
}

// Scenarios returns the names of the scenarios, in order.
func Scenarios() []string {
	var names []string
	for name := range scenarios() {
		names = append(names, name)
	}
	slices.Sort(names)

	return names
}

// NamePrefix begins the name of each simulated node.
const NamePrefix = "sim-"

// Label marks the simulated nodes, by which they are told from others of these names.
const Label = "simulated"

// GroupSim is the group of all simulated nodes. Their other group is that of their role.
const GroupSim = "sim"

// Plan is what a fleet of scripts is made from. The same plan gives the same scripts.
type Plan struct {
	// Nodes is how many there are.
	Nodes int
	// Scenario is one of Scenarios, empty for DefaultScenario.
	Scenario string
	Seed     uint64
	// RunTime is how long a run takes at most, but on late nodes; 0 is DefaultRunTime.
	RunTime time.Duration
}

// DefaultRunTime is how long runs take at most, lateRunTime those of a late node.
const (
	DefaultRunTime = 200 * time.Millisecond
	lateRunTime    = 20 * time.Minute
)

// Script is what a node is, and how it behaves.
type Script struct {
	Node string
	Kind Kind
	// Host is the name of its machine.
	Host   string
	Groups []string
	Labels map[string]string
	// Version is that of muster there, empty for the one that plays it.
	Version string
	// Skew is how far its clock is ahead.
	Skew time.Duration
	// Backlog is how many reports are in its outbox that it does not publish.
	Backlog int
	// Error is why a resource of each manifest fails, empty for none.
	Error string
	// RunTime is how long its runs take at most, of which they take a half at least.
	RunTime time.Duration

	// seed is that of its random choices.
	seed [2]uint64
}

// Scripts returns the scripts of a plan, in the order of their names. The error is that it is
// not valid.
func Scripts(p Plan) ([]Script, error) {
	if p.Scenario == "" {
		p.Scenario = DefaultScenario
	}
	shares, known := scenarios()[p.Scenario]
	switch {
	case !known:
		return nil, fmt.Errorf("unknown scenario %q, there is %s", p.Scenario, strings.Join(Scenarios(), ", "))
	case p.Nodes < 1:
		return nil, fmt.Errorf("%d nodes: there must be one at least", p.Nodes)
	}
	if p.RunTime <= 0 {
		p.RunTime = DefaultRunTime
	}
	kinds := kindsOf(p, shares)
	out := make([]Script, p.Nodes)
	for i := range out {
		out[i] = script(p, i, kinds[i])
	}

	return out, nil
}

// kindsOf deals the kinds to the nodes.
func kindsOf(p Plan, shares []share) []Kind {
	kinds := make([]Kind, p.Nodes)
	for i := range kinds {
		kinds[i] = KindStable
	}
	order := rand.New(rand.NewPCG(p.Seed, 0)).Perm(p.Nodes)
	for _, s := range shares {
		count := min(max(int(s.part*float64(p.Nodes)), s.least), len(order))
		for _, i := range order[:count] {
			kinds[i] = s.kind
		}
		order = order[count:]
	}

	return kinds
}

// place is one of the values that nodes have in turn.
func place[T any](values []T, i int) T { return values[i%len(values)] }

// script returns the script of the node at a place.
func script(p Plan, i int, kind Kind) Script {
	role := place([]string{"web", "web", "web", "db", "cache"}, i)
	name := fmt.Sprintf("%s%04d", NamePrefix, i+1)
	s := Script{
		Node: name, Kind: kind, RunTime: p.RunTime, seed: [2]uint64{p.Seed, uint64(i) + 1},
		Host:   fmt.Sprintf("%s%04d.%s.example.net", role, i+1, site(i)),
		Groups: []string{GroupSim, NamePrefix + role},
		Labels: map[string]string{Label: "yes", "role": role, "site": site(i), "rack": fmt.Sprintf("%c%d", 'a'+rune(i/20%6), i/4%5+1)},
	}
	switch kind {
	case KindFailing:
		s.Error = place(failures(), int(p.Seed%7)+i)
	case KindHostile:
		s.Error, s.Host = hostileText, hostileText
		s.Labels["owner"] = hostileText
	case KindLate:
		s.RunTime = lateRunTime
	case KindSkewed:
		s.Skew = -37 * time.Minute
	case KindOld:
		s.Version = "0.1.0"
	case KindBacklog:
		s.Backlog = 12_345
	}

	return s
}

// site is where a node is.
func site(i int) string { return place([]string{"ams1", "fra2"}, i/40) }

// failures are why resources fail.
func failures() []string { return []string{noSpace, noMirror, noStart} }

const (
	noSpace  = "no space left on device"
	noMirror = "E: Unable to locate package: the mirror deb.example.net cannot be reached"
	noStart  = "the unit failed to start: exit code 203, see journalctl -u"
)

// errorOf returns why a resource of a type fails: a service does not start for want of a mirror.
func (s *Script) errorOf(typ string) string {
	switch {
	case s.Kind != KindFailing:
		return s.Error
	case typ == "service":
		return noStart
	case typ == "package" && s.Error != noSpace:
		return noMirror
	default:
		return noSpace
	}
}
