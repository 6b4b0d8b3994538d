package view

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

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
	for _, reported := range nodes {
		n := NewNode(reported, all.Statuses(reported), all)
		c.node(&n, func(key string) model.ManifestState { return n.Manifests[key] })
	}

	return c.summary(all, version, now)
}

// summary returns the overview of the counted nodes, sorted by name.
func (c *counter) summary(all *fleet.Assigned, version string, now time.Time) Summary {
	never := map[string]bool{}
	for _, s := range all.NeverSeen(func(node string) bool {
		_, is := slices.BinarySearch(c.nodes, node)
		return is
	}) {
		c.status(nil, &s, false)
		never[s.Node] = true
	}
	out := Summary{At: now, Total: len(c.nodes), States: c.states(), Manifests: c.sortedManifests(), Failing: c.sortedFailures(now)}
	out.Flapping, out.Clocks, out.Outboxes, out.Messages = sorted(c.flapping, compareFlapping), c.clocks, c.outboxes, c.messages
	out.Versions = sortedVersions(c.versions, version)
	out.Lost = []Lost{}
	out.Unassigned, out.unchecked = c.sortedUnassigned()
	slices.SortStableFunc(out.Clocks, func(a, b Clock) int {
		return cmp.Compare(b.Offset.Std().Abs(), a.Offset.Std().Abs())
	})
	slices.SortStableFunc(out.Outboxes, func(a, b Outbox) int { return cmp.Compare(b.Reports, a.Reports) })
	out.Incomplete = []string{}
	if c.unreadable > 0 {
		out.Incomplete = append(out.Incomplete, fmt.Sprintf("the state of %d of %d nodes cannot be read: they count for no manifest", c.unreadable, len(c.nodes)))
	}
	if len(never) > 0 {
		out.Incomplete = append(out.Incomplete, fmt.Sprintf("nodes that have assignments but were never seen: %d; the node total excludes them, and their assignments count as unreachable", len(never)))
	}

	return out
}

type counter struct {
	// nodes are the names of the nodes.
	nodes      []string
	unreadable int
	keys       map[string]assignedKey
	byStatus   map[fleet.Status]*State
	manifests  []Manifest
	failures   map[failureID]*failingNodes
	flapping   map[flappingID]*Flapping
	versions   map[string]*Version
	clocks     []Clock
	outboxes   []Outbox
	messages   []Message
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

	return &counter{
		keys: keys, manifests: manifests, byStatus: map[fleet.Status]*State{},
		failures: map[failureID]*failingNodes{}, flapping: map[flappingID]*Flapping{}, versions: map[string]*Version{},
		clocks: []Clock{}, outboxes: []Outbox{}, messages: []Message{}, lost: map[string]*Lost{},
	}
}

// node counts a node. manifest returns the state of a manifest, because Manifests may be missing.
func (c *counter) node(n *Node, manifest func(key string) model.ManifestState) {
	c.nodes = append(c.nodes, n.Node.Node)
	c.state(n)
	c.reported(&n.Node, n.State)
	for i := range n.Statuses {
		c.status(manifest, &n.Statuses[i].RolloutStatus, n.Paused != nil)
	}
}

// reported counts what a node reports about itself.
func (c *counter) reported(n *model.Node, state fleet.Status) {
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

// state counts the state of a node, and the state that a paused node would have without its pause.
func (c *counter) state(n *Node) {
	s := c.byStatus[n.State]
	if s == nil {
		s = &State{State: n.State}
		c.byStatus[n.State] = s
	}
	s.add(n.Node.Node)
	switch n.State {
	case fleet.StatusUnreadable, fleet.StatusStopped, fleet.StatusUnreachable:
		s.Since = model.EarlierNonZero(s.Since, n.Heard)
	case fleet.StatusPaused:
		if s.Otherwise == nil {
			s.Otherwise = map[fleet.Status]int{}
		}
		resumed := n.Node
		resumed.Paused = nil
		s.Otherwise[fleet.NodeStatus(resumed, rolloutsOf(n))]++
	}
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

func (c *counter) sortedManifests() []Manifest {
	out := c.manifests
	slices.SortFunc(out, func(a, b Manifest) int {
		return cmp.Or(
			cmp.Compare(b.Failed+b.Rejected, a.Failed+a.Rejected), cmp.Compare(b.Pending, a.Pending), cmp.Compare(b.Unreachable, a.Unreachable), cmp.Compare(a.Name, b.Name))
	})

	return out
}

// Flapping is a resource of a manifest that flaps on nodes.
type Flapping struct {
	Manifest string `json:"manifest"`
	Resource string `json:"resource"`
	// By is the writer that the first of the nodes saw.
	By string `json:"by"`
	Members
}

type flappingID struct{ name, resource string }

// Clock is a node with a wrong clock.
type Clock struct {
	Node string `json:"node"`
	model.ClockOffset
}

// Outbox is a node with unpublished reports.
type Outbox struct {
	Node    string `json:"node"`
	Reports int    `json:"reports"`
}

// Message is a problem that a node reports about itself. A long message is cut.
type Message struct {
	Node    string `json:"node"`
	Message string `json:"message"`
}

// Version is a version of muster on nodes.
type Version struct {
	Version string `json:"version"`
	// Older means that it is earlier than the reference version.
	Older bool `json:"older"`
	// Current means that it is the reference version.
	Current bool `json:"current"`
	Members
}

func (c *counter) flaps(n *model.Node) {
	for _, f := range n.Flapping[:min(len(n.Flapping), model.MaxFlapping)] {
		_, name, err := fleet.ParseKey(f.Manifest)
		if err != nil {
			name = firstLine(f.Manifest, maxText)
		}
		id := flappingID{name, firstLine(f.Resource.String(), maxText)}
		known := c.flapping[id]
		if known == nil {
			known = &Flapping{Manifest: id.name, Resource: id.resource, By: firstLine(f.By(), maxText)}
			c.flapping[id] = known
		}
		known.add(n.Node)
	}
}

// sorted returns the values of a map in an order.
func sorted[K comparable, V any](all map[K]*V, compare func(a, b V) int) []V {
	out := make([]V, 0, len(all))
	for _, v := range all {
		out = append(out, *v)
	}
	slices.SortFunc(out, compare)

	return out
}

func compareFlapping(a, b Flapping) int {
	return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Manifest, b.Manifest), cmp.Compare(a.Resource, b.Resource))
}

// maxVersion limits the bytes of a version.
const maxVersion = 40

func (c *counter) version(n *model.Node) {
	text := strings.ToValidUTF8(n.Version[:min(len(n.Version), maxVersion)], "")
	v := c.versions[text]
	if v == nil {
		v = &Version{Version: text}
		c.versions[text] = v
	}
	v.add(n.Node)
}

// sortedVersions returns versions, newest first, and marks versions that are earlier than or equal to the
// given one. A node could claim any version, so the newest claimed version is no reference.
func sortedVersions(versions map[string]*Version, current string) []Version {
	for _, v := range versions {
		v.Older, v.Current = IsOlder(v.Version, current), strings.TrimPrefix(v.Version, "v") == strings.TrimPrefix(current, "v")
	}

	return sorted(versions, func(a, b Version) int {
		return cmp.Or(semver.Compare(semverOf(b.Version), semverOf(a.Version)), cmp.Compare(a.Version, b.Version))
	})
}

// IsOlder reports whether a version is earlier than another. An invalid version is not.
func IsOlder(version, current string) bool {
	a, b := semverOf(version), semverOf(current)

	return semver.IsValid(a) && semver.IsValid(b) && semver.Compare(a, b) < 0
}

func semverOf(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// Limits of unassigned manifests: any node can report any number of them.
const (
	// maxUnassignedOfNode limits the counted manifests of one node, maxUnassigned the counted manifests of all nodes.
	maxUnassignedOfNode = 20
	maxUnassignedTotal  = 10_000
	// maxChecked limits the manifests whose keys are checked.
	maxChecked = 50
)

// Lost is a manifest that reachable nodes run although the bucket lost its key.
type Lost struct {
	Key string `json:"key"`
	// Revision is the newest revision that a node runs.
	Revision uint64 `json:"revision"`
	Members
}

// unassigned counts a manifest that the current node runs without an assignment, unless the node is away.
func (c *counter) unassigned(s *fleet.RolloutStatus) {
	if c.rest < 0 {
		return
	}
	l := c.lost[s.Key]
	if c.rest == 0 || l == nil && len(c.lost) >= maxUnassignedTotal {
		c.unchecked++
		return
	}
	c.rest--
	if l == nil {
		l = &Lost{Key: s.Key}
		c.lost[s.Key] = l
	}
	l.Revision = max(l.Revision, s.Current)
	l.add(s.Node)
}

// sortedUnassigned returns the unassigned manifests to check, the most frequent first, and the number of the others.
func (c *counter) sortedUnassigned() (all []Lost, more int) {
	all = sorted(c.lost, func(a, b Lost) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Key, b.Key)) })
	more = c.unchecked
	for _, l := range all[min(len(all), maxChecked):] {
		more += l.Nodes
	}

	return all[:min(len(all), maxChecked)], more
}

// Revisions returns the keys of Unassigned with the revisions that nodes run.
func (s *Summary) Revisions() map[string]uint64 {
	out := make(map[string]uint64, len(s.Unassigned))
	for _, l := range s.Unassigned {
		out[l.Key] = l.Revision
	}

	return out
}

// SetLost moves the manifests of Unassigned whose keys are lost to Lost, and clears Unassigned.
func (s *Summary) SetLost(lost map[string]bool) {
	s.Lost = []Lost{}
	for _, l := range s.Unassigned {
		if lost[l.Key] {
			s.Lost = append(s.Lost, l)
		}
	}
	if s.Unassigned = nil; len(s.Lost) > 0 {
		s.LostUnchecked = s.unchecked
	}
}

// LostTitle returns the number of lost manifests, empty for none.
func (s *Summary) LostTitle() string {
	switch len(s.Lost) {
	case 0:
		return ""
	case 1:
		return "1 manifest has lost its key"
	default:
		return fmt.Sprintf("%d manifests have lost their keys", len(s.Lost))
	}
}

// LostRemedy returns the remedy for the lost manifests, with the command that removes a key.
func (s *Summary) LostRemedy(remove string) string {
	if len(s.Lost) == 1 {
		return "push it again or run " + remove
	}

	return "push them again or run " + remove
}

// errorLine is an error that begins with the line of a manifest, and the type of the resource on that line. The
// resource may have another name on each node.
var errorLine = regexp.MustCompile(`^(\S+:\d+:\d+): (?:([a-z][a-z0-9_-]*)#)?`)

type lineID struct {
	manifest, place, of string
	status              fleet.Status
}

// sortedFailures returns the failures by line, the most frequent first.
func (c *counter) sortedFailures(now time.Time) []Failure {
	places := map[lineID][]*failingNodes{}
	out := []Failure{}
	for _, f := range c.failures {
		found := errorLine.FindStringSubmatch(f.Error)
		if found == nil {
			out = append(out, f.at(now))
			continue
		}
		id := lineID{f.Manifest, found[1], found[2], f.Status}
		places[id] = append(places[id], f)
	}
	for _, all := range places {
		out = append(out, together(all, now))
	}
	slices.SortFunc(out, compareFailures)

	return out
}

func compareFailures(a, b Failure) int {
	return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Manifest, b.Manifest), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Error, b.Error))
}

func together(all []*failingNodes, now time.Time) Failure {
	if len(all) == 1 {
		return all[0].at(now)
	}
	parts := make([]Failure, len(all))
	sum := failingNodes{}
	for i, f := range all {
		parts[i] = f.at(now)
		sum.claims = append(sum.claims, f.claims...)
	}
	slices.SortFunc(parts, compareFailures)
	sum.Failure = Failure{Manifest: parts[0].Manifest, Status: parts[0].Status, Error: parts[0].Error, parts: parts}
	for _, part := range parts {
		sum.Nodes += part.Nodes
		sum.More += part.More
		sum.First = append(sum.First, part.First...)
	}
	sum.Differ = sum.Nodes - parts[0].Nodes
	slices.Sort(sum.First)
	sum.First = slices.Clip(sum.First[:min(len(sum.First), maxFirst)])

	return sum.at(now)
}

// Texts returns the failures with one text each.
func (f Failure) Texts() iter.Seq[Failure] {
	if f.parts == nil {
		return slices.Values([]Failure{f})
	}

	return slices.Values(f.parts)
}

// Differs reports the number of nodes with another text, empty for none.
func (f Failure) Differs() string {
	if f.Differ == 0 {
		return ""
	}

	return fmt.Sprintf(" (the text differs on %d of them)", f.Differ)
}
