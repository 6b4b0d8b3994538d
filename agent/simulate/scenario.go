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

// The kinds. Nodes of all kinds except KindSilent run their assignments and report.
const (
	// KindStable is a node with successful runs.
	KindStable Kind = "stable"
	// KindFailing is a node with a failing resource in each manifest.
	KindFailing Kind = "failing"
	// KindDrifting is a node with occasional drift, which is repaired.
	KindDrifting Kind = "drifting"
	// KindFlapping is a node with a resource that another program changes repeatedly.
	KindFlapping Kind = "flapping"
	// KindUnhealthy is a node with an occasionally critical health check.
	KindUnhealthy Kind = "unhealthy"
	// KindLate is a node with runs of minutes and fast requests.
	KindLate Kind = "late"
	// KindSilent is a node that runs its assignments once and then stays silent.
	KindSilent Kind = "silent"
	// KindSkewed is a node with a wrong clock.
	KindSkewed Kind = "skewed"
	// KindOld is a node with an old version of muster.
	KindOld Kind = "old"
	// KindBacklog is a node with many unpublished reports.
	KindBacklog Kind = "backlog"
	// KindHostile is a failing node that sends markup, control characters and very long lines.
	KindHostile Kind = "hostile"
)

// DefaultScenario has nodes of all kinds except KindHostile.
const DefaultScenario = "mixed"

// share is the number of nodes of a kind: a fraction, and a minimum.
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

// Scenarios returns the sorted names of the scenarios.
func Scenarios() []string {
	var names []string
	for name := range scenarios() {
		names = append(names, name)
	}
	slices.Sort(names)

	return names
}

// NamePrefix is the prefix of the names of simulated nodes.
const NamePrefix = "sim-"

// Label marks simulated nodes. It distinguishes them from other nodes with such names.
const Label = "simulated"

// GroupSim is the group of all simulated nodes. Each is also in the group of its role.
const GroupSim = "sim"

// Plan describes a fleet of scripts. Equal plans give equal scripts.
type Plan struct {
	// Nodes is the number of nodes.
	Nodes int
	// Scenario is one of Scenarios, empty for DefaultScenario.
	Scenario string
	Seed     uint64
	// RunTime limits the duration of a run, except on late nodes; 0 means DefaultRunTime.
	RunTime time.Duration
}

// DefaultRunTime limits the duration of runs, lateRunTime of runs on a late node.
const (
	DefaultRunTime = 200 * time.Millisecond
	lateRunTime    = 20 * time.Minute
)

// Script describes a node and its behaviour.
type Script struct {
	Node string
	Kind Kind
	// Host is the name of its machine.
	Host   string
	Groups []string
	Labels map[string]string
	// Version is the version of muster on the node, empty for the version of the simulation.
	Version string
	// Skew is the offset of its clock.
	Skew time.Duration
	// Backlog is the number of reports that it never publishes.
	Backlog int
	// Error is the error of a resource of each manifest, empty for none.
	Error string
	// RunTime limits the duration of its runs. They take at least half of it.
	RunTime time.Duration

	// seed is the seed of its random choices.
	seed [2]uint64
}

// Scripts returns the scripts of a plan sorted by name. It returns an error for an invalid plan.
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

// kindsOf assigns kinds to the nodes.
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

// place returns a value for each node in turn.
func place[T any](values []T, i int) T { return values[i%len(values)] }

// script returns the script of the node with an index.
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

// site returns the site of a node.
func site(i int) string { return place([]string{"ams1", "fra2"}, i/40) }

// failures are errors of resources.
func failures() []string { return []string{noSpace, noMirror, noStart} }

const (
	noSpace  = "no space left on device"
	noMirror = "E: Unable to locate package: the mirror deb.example.net cannot be reached"
	noStart  = "the unit failed to start: exit code 203, see journalctl -u"
)

// errorOf returns an error for a resource of a type. For example, a service does not fail because of a
// mirror.
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
