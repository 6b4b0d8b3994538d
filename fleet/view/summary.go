// Package summary makes the overview of a fleet, and what is known of one node, of the states
// of nodes and the assignments. It is pure: it asks nobody.
package view

import (
	"cmp"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Summary is the overview of a fleet at a time.
type Summary struct {
	At time.Time `json:"at"`
	// Total is how many nodes are known, States counts them by fleet.NodeStatus, without those
	// that no node has.
	Total  int     `json:"total"`
	States []State `json:"states"`
	// Manifests are by name, whatever their targets.
	Manifests []Manifest `json:"manifests"`
	// Failing are the errors of nodes that failed or rejected what is assigned, the most
	// frequent first.
	Failing []Failure `json:"failing"`
	// Flapping are the resources that something else changes again and again, the most
	// frequent first.
	Flapping []Flapping `json:"flapping"`
	// Clocks are the nodes whose clock apparently differs, the furthest off first.
	Clocks []Clock `json:"clocks"`
	// Outboxes are the nodes with reports that wait to be published, the most first.
	Outboxes []Outbox `json:"outboxes"`
	// Messages are what nodes say is wrong with them as a whole, by node, whatever their state: such as a group that
	// NATS does not permit them.
	Messages []Message `json:"messages"`
	// Versions are those of muster on the nodes, the newest first, then what is no number.
	Versions []Version `json:"versions"`
	// Lost are the manifests that nodes run although the bucket lost their keys, the most frequent first. SetLost sets
	// it, with the result of a check of the bucket.
	Lost []Lost `json:"lost"`
	// LostUnchecked is the number of further unassigned manifests on nodes that were not checked.
	LostUnchecked int `json:"lost_unchecked,omitempty"`
	// Unassigned are the manifests that nodes run without an assignment: removed ones, and lost ones.
	Unassigned []Lost `json:"-"`
	unchecked  int
	// Incomplete says what is missing above, and why.
	Incomplete []string `json:"incomplete"`
}

// Members are nodes: how many, and the first of them by name.
type Members struct {
	Nodes int      `json:"nodes"`
	First []string `json:"first"`
	last  string
}

// maxFirst is how many nodes are named of those that have something in common.
const maxFirst = 10

// add counts a node, once of those that follow each other.
func (m *Members) add(node string) {
	if m.Nodes > 0 && m.last == node {
		return
	}
	m.last = node
	if m.Nodes++; m.Nodes <= maxFirst {
		m.First = append(m.First, node)
	}
}

// MembersOf counts the nodes that are the keys of a map.
func membersOf[T any](nodes map[string]T) Members {
	m := Members{Nodes: len(nodes), First: make([]string, 0, maxFirst)}
	for node := range nodes {
		if at, _ := slices.BinarySearch(m.First, node); at < maxFirst {
			m.First = slices.Insert(m.First[:min(len(m.First), maxFirst-1)], at, node)
		}
	}

	return m
}

// State counts the nodes of one state.
type State struct {
	State fleet.Status `json:"state"`
	// Since is when the one that is away for the longest time was last seen; zero for other states.
	Since time.Time `json:"since,omitzero"`
	// Otherwise counts paused nodes by what their state would be without the pause; nil for other states.
	Otherwise map[fleet.Status]int `json:"otherwise,omitempty"`
	Members
}

// Hidden returns which states the pause of paused nodes hides, with how many nodes, as "1 failed, 2 pending"; empty for
// none, and for other states.
func (s State) Hidden() string {
	var all []string
	for _, state := range stateOrder {
		if count := s.Otherwise[state]; count > 0 && state != fleet.StatusOK && state != fleet.StatusNoManifest {
			all = append(all, fmt.Sprintf("%d %s", count, state))
		}
	}

	return strings.Join(all, ", ")
}

// Manifest counts the nodes that the assignments of a name are for, by the status of it there.
type Manifest struct {
	Name string `json:"name"`
	fleet.Tally
	// Noop counts those of UpToDate where something would change that is only reported.
	Noop int `json:"noop"`
	// Oldest is the node that is pending for the longest time, of those that are not paused as
	// long as there is one; nil for none.
	Oldest *Pending `json:"oldest_pending,omitempty"`
}

// Pending is a node that does not run a revision yet.
type Pending struct {
	Node   string `json:"node"`
	Key    string `json:"key"`
	Reason string `json:"reason"`
	// Since is when the revision was assigned.
	Since time.Time `json:"since,omitzero"`
	// Paused reports whether its node is paused, and so are all others on which the manifest is pending.
	Paused bool `json:"paused,omitempty"`
}

// isBefore reports whether it is named rather than another one: a paused node only waits.
func (p *Pending) isBefore(o *Pending) bool {
	if p.Paused != o.Paused {
		return o.Paused
	}

	return p.Since.Before(o.Since)
}

// Failure is an error that nodes have in common: of one line of a manifest, where the error names one, else of one
// text.
type Failure struct {
	Manifest string       `json:"manifest"`
	Status   fleet.Status `json:"status"`
	// Error is the text that most of the nodes have, Differ is how many have another one: texts of one line may have
	// paths, addresses or names that are those of a node.
	Error  string `json:"error"`
	Differ int    `json:"differ,omitempty"`
	// Since is since when most of these nodes fail: the median of what they say, so that none decides that has a
	// wrong clock, or lies. It is not in the future, and zero where nobody knows: older agents do not report since
	// when they fail.
	Since time.Time `json:"since,omitzero"`
	// More is how many of these nodes have further errors, which their states do not tell.
	More int `json:"-"`
	Members
	// parts are those of one text each, nil where there is one.
	parts []Failure
}

// Of makes the overview of nodes, which are in the order of their names, and of the
// assignments, as of a time. Nodes of an earlier version than the one given are marked as such;
// one that is no number marks none.
func SummaryOf(nodes []model.Node, entries []model.Entry, version string, now time.Time) Summary {
	all := fleet.NewAssigned(entries)
	c := newCounter(all)
	parts := slices.Collect(slices.Chunk(nodes, max(1, (len(nodes)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))))
	counters := make([]*counter, len(parts))
	var counting sync.WaitGroup
	for i, part := range parts {
		counters[i] = c.another()
		counting.Go(func() { counters[i].count(part, all) })
	}
	counting.Wait()
	for _, part := range counters {
		c.merge(part)
	}

	return c.summary(all, func(i int) string { return nodes[i].Node }, version, now)
}

// count counts nodes and their statuses.
func (c *counter) count(nodes []model.Node, all *fleet.Assigned) {
	var statuses []fleet.RolloutStatus
	for i := range nodes {
		n := &nodes[i]
		statuses = all.AppendStatuses(statuses[:0], n)
		state := fleet.NodeStatus(*n, statuses)
		c.node(n, state)
		if state == fleet.StatusPaused {
			c.paused(fleet.Worst(func(yield func(fleet.Status) bool) {
				for k := range statuses {
					if !yield(statuses[k].Status) {
						return
					}
				}
			}))
		}
		of := func(key string) model.ManifestState { return n.Manifests[key] }
		for k := range statuses {
			c.status(of, &statuses[k], n.Paused != nil)
		}
	}
}

// From is Of with nodes whose statuses are known. Those of manifests are asked for by the place of the node and the
// key: its Manifests may be missing.
func summaryFrom(nodes []*Node, manifest func(node int, key string) model.ManifestState, all *fleet.Assigned, version string, now time.Time) Summary {
	c := newCounter(all)
	for i, n := range nodes {
		c.node(&n.Node, n.State)
		c.pausedOf(n)
		of := func(key string) model.ManifestState { return manifest(i, key) }
		for k := range n.Statuses {
			c.status(of, &n.Statuses[k].RolloutStatus, n.Paused != nil)
		}
	}

	return c.summary(all, func(i int) string { return nodes[i].Node.Node }, version, now)
}

// summary returns the overview of the nodes that were counted, whose names are in order.
func (c *counter) summary(all *fleet.Assigned, name func(i int) string, version string, now time.Time) Summary {
	never := map[string]bool{}
	for _, s := range all.NeverSeen(func(node string) bool {
		at, is := sort.Find(c.nodes, func(i int) int { return strings.Compare(node, name(i)) })
		return is && at < c.nodes
	}) {
		c.status(nil, &s, false)
		never[s.Node] = true
	}
	out := Summary{At: now, Total: c.nodes, States: c.states(), Manifests: c.sortedManifests(), Failing: c.sortedFailures(now)}
	out.Flapping, out.Clocks, out.Outboxes, out.Messages = c.sortedFlapping(), c.clocks, c.outboxes, c.messages
	out.Versions = sortedVersions(c.versions, version)
	out.Lost = []Lost{}
	out.Unassigned, out.unchecked = c.sortedUnassigned()
	slices.SortStableFunc(out.Clocks, func(a, b Clock) int {
		return cmp.Compare(b.Offset.Std().Abs(), a.Offset.Std().Abs())
	})
	slices.SortStableFunc(out.Outboxes, func(a, b Outbox) int { return cmp.Compare(b.Reports, a.Reports) })
	out.Incomplete = []string{}
	if c.unreadable > 0 {
		out.Incomplete = append(out.Incomplete, fmt.Sprintf("the state of %d of %d nodes cannot be read: they count for no manifest", c.unreadable, c.nodes))
	}
	if len(never) > 0 {
		out.Incomplete = append(out.Incomplete, fmt.Sprintf("nodes that have assignments but were never seen: %d; the node total excludes them, and their assignments count as unreachable", len(never)))
	}

	return out
}

// counter collects the overview.
type counter struct {
	nodes, unreadable int
	keys              map[string]assignedKey
	byStatus          map[fleet.Status]*State
	manifests         []Manifest
	failures          map[failureID]*failingNodes
	flapping          map[flappingID]*Flapping
	versions          map[string]*Version
	clocks            []Clock
	outboxes          []Outbox
	messages          []Message
	// lost are the unassigned manifests by key, unchecked is the number of those that are not in it. rest is how many
	// more the current node may add; negative for a node that is away.
	lost            map[string]*Lost
	unchecked, rest int
}

// assigned is the place of the manifest that a key assigns, and since when it does.
type assignedKey struct {
	manifest int
	since    time.Time
}

// failureID tells failures apart.
type failureID struct {
	name   string
	status fleet.Status
	text   string
}

// failing is a failure with what its nodes say since when it is so, in any order.
type failingNodes struct {
	Failure
	claims []time.Time
}

// at returns the failure as of a time.
func (f *failingNodes) at(now time.Time) Failure {
	out := f.Failure
	if len(f.claims) == 0 {
		return out
	}
	slices.SortFunc(f.claims, time.Time.Compare)
	if out.Since = f.claims[len(f.claims)/2]; out.Since.After(now) {
		out.Since = now
	}

	return out
}

func newCounter(all *fleet.Assigned) *counter {
	keys, places, manifests := map[string]assignedKey{}, map[string]int{}, []Manifest{}
	for name, e := range all.All() {
		place, is := places[name]
		if !is {
			place = len(manifests)
			places[name] = place
			manifests = append(manifests, Manifest{Name: name})
		}
		keys[e.Key] = assignedKey{place, e.Time}
	}

	return (&counter{keys: keys, manifests: manifests}).another()
}

// another returns one that counted nothing, for the same assignments. It shares what does not change.
func (c *counter) another() *counter {
	return &counter{
		keys: c.keys, manifests: slices.Clone(c.manifests), byStatus: map[fleet.Status]*State{},
		failures: map[failureID]*failingNodes{}, flapping: map[flappingID]*Flapping{}, versions: map[string]*Version{},
		clocks: []Clock{}, outboxes: []Outbox{}, messages: []Message{}, lost: map[string]*Lost{},
	}
}

// node counts a node, but not its statuses.
func (c *counter) node(n *model.Node, state fleet.Status) {
	c.nodes++
	c.state(n, state)
	c.rest = -1
	if n.Unreadable != "" {
		c.unreadable++
		return
	}
	c.version(n)
	if state == fleet.StatusStopped || state == fleet.StatusUnreachable {
		return // it was so at another time
	}
	c.rest = maxUnassignedOfNode
	c.flaps(n)
	if n.Clock.Apparent() {
		c.clocks = append(c.clocks, Clock{n.Node, n.Clock})
	}
	if n.Outbox > 0 {
		c.outboxes = append(c.outboxes, Outbox{n.Node, n.Outbox})
	}
	if n.Message != "" {
		c.messages = append(c.messages, Message{n.Node, firstLine(n.Message, maxText)})
	}
}

// state counts the state of a node.
func (c *counter) state(n *model.Node, state fleet.Status) {
	if c.byStatus[state] == nil {
		c.byStatus[state] = &State{State: state}
	}
	s := c.byStatus[state]
	s.add(n.Node)
	if state == fleet.StatusUnreadable || state == fleet.StatusStopped || state == fleet.StatusUnreachable {
		s.Since = model.EarlierNonZero(s.Since, n.Heard)
	}
}

// States counts nodes, which are in the order of their names, by their states.
func statesFrom(nodes iter.Seq[*Node]) []State {
	c := counter{byStatus: map[fleet.Status]*State{}}
	for n := range nodes {
		c.state(&n.Node, n.State)
		c.pausedOf(n)
	}

	return c.states()
}

// pausedOf counts a node by its state without a pause, where it is paused.
func (c *counter) pausedOf(n *Node) {
	if n.State == fleet.StatusPaused {
		c.paused(n.Otherwise())
	}
}

// paused counts a paused node, which is counted, by its state without the pause.
func (c *counter) paused(otherwise fleet.Status) {
	s := c.byStatus[fleet.StatusPaused]
	if s.Otherwise == nil {
		s.Otherwise = map[fleet.Status]int{}
	}
	s.Otherwise[otherwise]++
}

// status counts a status of a node, which may be paused and has the manifests; nil where it was never seen.
func (c *counter) status(manifest func(key string) model.ManifestState, s *fleet.RolloutStatus, paused bool) {
	key, is := c.keys[s.Key]
	if !is {
		c.unassigned(s)
		return
	}
	m := &c.manifests[key.manifest]
	m.Add(*s)
	switch s.Status {
	case fleet.StatusUpToDate:
		if s.Outcome == model.OutcomeNoop {
			m.Noop++
		}
	case fleet.StatusPending:
		p := Pending{Node: s.Node, Key: s.Key, Since: key.since, Paused: paused}
		if m.Oldest == nil || p.isBefore(m.Oldest) {
			p.Reason = firstLine(s.Reason, maxText)
			m.Oldest = &p
		}
	case fleet.StatusFailed, fleet.StatusRejected:
		of := manifest(s.Key)
		id := failureID{m.Name, s.Status, reasonOf(of, s, m.Name)}
		f := c.failures[id]
		if f == nil {
			f = &failingNodes{Failure: Failure{Manifest: m.Name, Status: s.Status, Error: id.text}}
			c.failures[id] = f
		}
		f.add(s.Node)
		if of.Counts.Failed > 1 {
			f.More++
		}
		since := of.FailedSince
		if s.Status == fleet.StatusRejected {
			since = key.since
		}
		if !since.IsZero() {
			f.claims = append(f.claims, since)
		}
	}
}

// reasonOf returns the first error of what failed, or why it was rejected, with the name of the
// manifest for its key where that begins a place in it, or one behind the first: keys of nodes differ.
func reasonOf(m model.ManifestState, s *fleet.RolloutStatus, name string) string {
	text := m.Error
	if s.Status == fleet.StatusRejected {
		text = strings.TrimPrefix(m.Late, model.LateRejected)
	}
	if place, is := strings.CutPrefix(text, s.Key+":"); is {
		const next = "; "
		text = name + ":" + strings.ReplaceAll(place, next+s.Key+":", next+name+":")
	}

	return firstLine(cmp.Or(text, s.Reason), maxText)
}

// stateOrder lists the statuses of nodes in display order, the worst first.
var stateOrder = [...]fleet.Status{
	fleet.StatusFailed, fleet.StatusRejected, fleet.StatusPending, fleet.StatusPaused, fleet.StatusUnreachable, fleet.StatusUnreadable, fleet.StatusStopped, fleet.StatusNoManifest, fleet.StatusOK,
}

// Severity returns the place of a state of nodes in the order in which they are shown, the
// worst first.
func Severity(state fleet.Status) int { return slices.Index(stateOrder[:], state) }

func (c *counter) states() []State {
	out := []State{}
	for _, status := range stateOrder {
		if s := c.byStatus[status]; s != nil {
			out = append(out, *s)
		}
	}

	return out
}

// sortedManifests returns manifests with something to look at first, then by name.
func (c *counter) sortedManifests() []Manifest {
	out := c.manifests
	slices.SortFunc(out, func(a, b Manifest) int {
		return cmp.Or(
			cmp.Compare(b.Failed+b.Rejected, a.Failed+a.Rejected), cmp.Compare(b.Pending, a.Pending), cmp.Compare(b.Unreachable, a.Unreachable), cmp.Compare(a.Name, b.Name))
	})

	return out
}
