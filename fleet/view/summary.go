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
	// Total is the number of known nodes. States counts them by fleet.NodeStatus, without empty states.
	Total  int     `json:"total"`
	States []State `json:"states"`
	// Manifests are by name, independent of their targets.
	Manifests []Manifest `json:"manifests"`
	// Failing are the errors of nodes with failed or rejected manifests, the most frequent first.
	Failing []Failure `json:"failing"`
	// Flapping are the resources that another program changes repeatedly, the most frequent first.
	Flapping []Flapping `json:"flapping"`
	// Clocks are the nodes with a wrong clock, the largest difference first.
	Clocks []Clock `json:"clocks"`
	// Outboxes are the nodes with unpublished reports, the largest number first.
	Outboxes []Outbox `json:"outboxes"`
	// Messages are the problems that nodes report about themselves, by node in any state, such as a group
	// that NATS does not permit.
	Messages []Message `json:"messages"`
	// Versions are the versions of muster on the nodes, newest first, then invalid versions.
	Versions []Version `json:"versions"`
	// Lost are the manifests that nodes run although the bucket lost their keys, the most frequent first. SetLost sets
	// it, with the result of a check of the bucket.
	Lost []Lost `json:"lost"`
	// LostUnchecked is the number of further unassigned manifests on nodes that were not checked.
	LostUnchecked int `json:"lost_unchecked,omitempty"`
	// Unassigned are the manifests that nodes run without an assignment: removed ones, and lost ones.
	Unassigned []Lost `json:"-"`
	unchecked  int
	// Incomplete lists the missing parts with their reasons.
	Incomplete []string `json:"incomplete"`
}

// Members is a number of nodes with the first names.
type Members struct {
	Nodes int      `json:"nodes"`
	First []string `json:"first"`
	last  string
}

// maxFirst limits the named nodes.
const maxFirst = 10

// add counts a node. Consecutive calls with one node count once.
func (m *Members) add(node string) {
	if m.Nodes > 0 && m.last == node {
		return
	}
	m.last = node
	if m.Nodes++; m.Nodes <= maxFirst {
		m.First = append(m.First, node)
	}
}

// membersOf counts the keys of a map.
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
	// Since is the last update of the node that is away for the longest time, zero for other states.
	Since time.Time `json:"since,omitzero"`
	// Otherwise counts paused nodes by their state without the pause, nil for other states.
	Otherwise map[fleet.Status]int `json:"otherwise,omitempty"`
	Members
}

// Hidden describes the states that a pause hides, such as "1 failed, 2 pending". It is empty for none and for
// other states.
func (s State) Hidden() string {
	var all []string
	for _, state := range stateOrder {
		if count := s.Otherwise[state]; count > 0 && state != fleet.StatusOK && state != fleet.StatusNoManifest {
			all = append(all, fmt.Sprintf("%d %s", count, state))
		}
	}

	return strings.Join(all, ", ")
}

// Manifest counts the target nodes of a manifest by status.
type Manifest struct {
	Name string `json:"name"`
	fleet.Tally
	// Noop counts the nodes of UpToDate with changes that are only reported.
	Noop int `json:"noop"`
	// Oldest is the node that is pending for the longest time, nil for none. A paused node counts only if
	// there is no other.
	Oldest *Pending `json:"oldest_pending,omitempty"`
}

// Pending is a node that does not run a revision yet.
type Pending struct {
	Node   string `json:"node"`
	Key    string `json:"key"`
	Reason string `json:"reason"`
	// Since is the time when the revision was assigned.
	Since time.Time `json:"since,omitzero"`
	// Paused means that its node is paused, like all other nodes with the manifest pending.
	Paused bool `json:"paused,omitempty"`
}

// isBefore reports whether it is named before another node. A paused node only waits.
func (p *Pending) isBefore(o *Pending) bool {
	if p.Paused != o.Paused {
		return o.Paused
	}

	return p.Since.Before(o.Since)
}

// Failure is a common error of nodes: with the same line of a manifest if the error names one, otherwise with
// the same text.
type Failure struct {
	Manifest string       `json:"manifest"`
	Status   fleet.Status `json:"status"`
	// Error is the text of most nodes. Differ is the number of nodes with another text, for example with a
	// path, address or name of the node.
	Error  string `json:"error"`
	Differ int    `json:"differ,omitempty"`
	// Since is the time since which most of these nodes fail: the median of their reported times, so that no
	// single wrong clock decides. It is not in the future. It is zero if it is unknown: older agents do not
	// report it.
	Since time.Time `json:"since,omitzero"`
	// More is the number of these nodes with further errors, which their states omit.
	More int `json:"-"`
	Members
	// parts are the failures of one text each, nil for a single text.
	parts []Failure
}

// SummaryOf returns the overview of nodes, which are sorted by name, and of the assignments at a time. It marks
// nodes with an earlier version than the given one. An invalid version marks none.
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

// summaryFrom returns the overview of nodes with known statuses. It requests the status of a manifest by the index
// of the node and the key, because Manifests may be missing.
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

// summary returns the overview of the counted nodes, sorted by name.
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
	// lost are the unassigned manifests by key, unchecked the number of the other unassigned manifests. rest
	// is the number that the current node may still add, negative for a node that is away.
	lost            map[string]*Lost
	unchecked, rest int
}

// assignedKey is the index of the manifest of a key, and the time of the assignment.
type assignedKey struct {
	manifest int
	since    time.Time
}

// failureID identifies a failure.
type failureID struct {
	name   string
	status fleet.Status
	text   string
}

// failingNodes is a failure with the reported start times of its nodes, in any order.
type failingNodes struct {
	Failure
	claims []time.Time
}

// at returns the failure at a time.
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

// another returns an empty counter for the same assignments. It shares the unchanged parts.
func (c *counter) another() *counter {
	return &counter{
		keys: c.keys, manifests: slices.Clone(c.manifests), byStatus: map[fleet.Status]*State{},
		failures: map[failureID]*failingNodes{}, flapping: map[flappingID]*Flapping{}, versions: map[string]*Version{},
		clocks: []Clock{}, outboxes: []Outbox{}, messages: []Message{}, lost: map[string]*Lost{},
	}
}

// node counts a node without its statuses.
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
		return // old data
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

// statesFrom counts nodes, which are sorted by name, by state.
func statesFrom(nodes iter.Seq[*Node]) []State {
	c := counter{byStatus: map[fleet.Status]*State{}}
	for n := range nodes {
		c.state(&n.Node, n.State)
		c.pausedOf(n)
	}

	return c.states()
}

// pausedOf counts a paused node by its state without the pause.
func (c *counter) pausedOf(n *Node) {
	if n.State == fleet.StatusPaused {
		c.paused(n.Otherwise())
	}
}

// paused counts an already counted paused node by its state without the pause.
func (c *counter) paused(otherwise fleet.Status) {
	s := c.byStatus[fleet.StatusPaused]
	if s.Otherwise == nil {
		s.Otherwise = map[fleet.Status]int{}
	}
	s.Otherwise[otherwise]++
}

// status counts a status of a node. The node may be paused and has the manifests; it is nil if it was never
// seen.
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

// reasonOf returns the first error of a failure, or the reason of a rejection. It replaces a key at the
// beginning of a position by the name of the manifest, because keys of nodes differ.
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

// Severity returns the index of a node state in display order, the worst first.
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

// sortedManifests returns manifests that need attention first, then by name.
func (c *counter) sortedManifests() []Manifest {
	out := c.manifests
	slices.SortFunc(out, func(a, b Manifest) int {
		return cmp.Or(
			cmp.Compare(b.Failed+b.Rejected, a.Failed+a.Rejected), cmp.Compare(b.Pending, a.Pending), cmp.Compare(b.Unreachable, a.Unreachable), cmp.Compare(a.Name, b.Name))
	})

	return out
}
