// Package status holds the state of a node and shows it: in the bucket of node states (Heartbeat),
// on the local socket, and as metrics. It also measures the clock of the node, publishes the package
// inventory, and decides when an agent with a goal ends.
package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// Node is the published state of the node. Create it with New.
type Node struct {
	Results

	version, host string
	started       time.Time
	config        func() config.Config
	// waiting returns the number of waiting reports, maxDocument the maximum size of the state.
	waiting, maxDocument func() int
	clock                *Clock

	mu     sync.Mutex
	fields fields
	// stopping is the start of the shutdown, zero before.
	stopping time.Time
	unstored unstored
}

// fields are the parts of the state that Node compares to find changes. A change replaces slices and maps.
type fields struct {
	problems problems
	watches  int
	polled   int
	flapping []model.FlappingState
	// paused is the active pause. labels are the operators' labels.
	paused *model.Paused
	// pausedBy contains the revisions of all active pauses by key.
	pausedBy map[string]uint64
	labels   map[string]string
	// joining are the new groups from operators whose assignments were not tried yet.
	joining []string
	// unread are the groups that the node could not read at its last attempt.
	unread []string
	// rejected contains the reasons for rejected control documents by key.
	rejected map[string]string
}

type problems struct {
	// duplicate describes another agent of this node, configuration the rejected configuration, control
	// rejected control documents, unread an unreadable control bucket, watches the reason for polling,
	// directory a missing state directory.
	duplicate, configuration, assignments, control, unread, watches, directory string
	// away means that the assignments cannot be read.
	away bool
}

func (p problems) list() []string {
	if p.away {
		p.unread = "" // same reason
	}
	all := []string{p.duplicate, p.configuration, p.assignments, p.control, p.unread, p.watches, p.directory}

	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// Wrong returns the problems of the node, without polled resources and an unreadable control bucket.
func (n *Node) Wrong() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	wrong := n.fields.problems
	wrong.watches, wrong.unread = "", ""

	return wrong.list()
}

// String returns all problems in one line.
func (p problems) String() string { return strings.Join(p.list(), "; ") }

// New returns the state of a started node. waiting returns the number of waiting reports, maxDocument the
// maximum size of the state.
func New(version string, config func() config.Config, waiting, maxDocument func() int, clock *Clock) *Node {
	host, _ := os.Hostname() // only for users

	return &Node{
		Results: Results{Changed: tasks.NewSignal(), Shown: tasks.NewSignal(), manifests: map[string]*manifestResults{}},
		version: version, host: host, started: time.Now().UTC(), config: config, waiting: waiting, maxDocument: maxDocument, clock: clock, unstored: unstored{},
		fields: fields{pausedBy: map[string]uint64{}, labels: map[string]string{}},
	}
}

// Identity returns a state with only the identity of the agent.
func (n *Node) Identity() model.NodeState {
	return model.NodeState{Protocol: model.ProtocolNode, Node: n.config().Node, Host: n.host, Version: n.version, Started: n.started, At: time.Now().UTC(), Groups: []string{}}
}

// State returns the state of the node, shortened to the maximum size.
func (n *Node) State() model.NodeState { return bounds.State(n.Unbounded(), n.maxDocument()) }

// Unbounded returns the complete state of the node.
func (n *Node) Unbounded() model.NodeState {
	c := n.config()
	s := n.Identity()
	s.Groups, s.Outbox = append(s.Groups, c.Groups...), n.waiting()
	s.Clock = n.clock.Offset()
	s.Manifests, s.Health = n.states()
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Groups = slices.DeleteFunc(s.Groups, func(g string) bool { return slices.Contains(n.fields.joining, g) })
	for _, g := range s.Groups {
		if slices.Contains(n.fields.unread, g) {
			s.UnreadGroups = append(s.UnreadGroups, g)
		}
	}
	s.Labels, s.Paused, s.PausedBy = labels(c.Labels, n.fields.labels), n.fields.paused, n.fields.pausedBy
	s.RejectedControl = maps.Clone(n.fields.rejected)
	s.Message, s.Watches, s.Polled, s.Flapping = n.fields.problems.String(), n.fields.watches, n.fields.polled, n.fields.flapping

	return s
}

// Describe sets the node, its assignments and its problems.
func (n *Node) Describe(out *model.AgentStatus) {
	c := n.config()
	out.Node, out.Groups, out.Version, out.Started, out.Outbox = c.Node, append([]string{}, c.Groups...), n.version, n.started, n.waiting()
	out.Manifests, out.Health = n.describe()
	n.mu.Lock()
	defer n.mu.Unlock()
	out.Notices = append(n.fields.problems.list(), slices.Sorted(maps.Values(n.unstored.reasons()))...)
	out.Watches, out.Polled, out.Flapping, out.Clock, out.Stopping = n.fields.watches, n.fields.polled, n.fields.flapping, n.clock.Offset(), n.stopping
	out.Paused = n.fields.paused
}

func labels(configured, given map[string]string) map[string]string {
	if len(given) == 0 {
		return maps.Clone(configured)
	}
	out := map[string]string{}
	maps.Copy(out, configured)
	maps.Copy(out, given)

	return out
}

// update makes a change, and notifies if it changed the state.
func (n *Node) update(change func(f *fields)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.fields
	if change(&n.fields); !reflect.DeepEqual(before, n.fields) {
		n.Changed.Notify()
		n.Shown.Notify()
	}
}

// SetStopping records the start of the shutdown.
func (n *Node) SetStopping() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopping = time.Now().UTC()
}

// SetWatches records the numbers of watched resources and of polled ones, with the reason for one that cannot
// be watched.
func (n *Node) SetWatches(watched, polled int, reason error) {
	text := ""
	if polled > 0 {
		what := "1 resource is polled, because it"
		if polled > 1 {
			what = fmt.Sprintf("%d resources are polled, because they", polled)
		}
		text = bounds.Text(fmt.Sprintf("%s cannot be watched: %v", what, reason))
	}
	n.update(func(f *fields) { f.watches, f.polled, f.problems.watches = watched, polled, text })
}

// SetFlapping records the flapping resources.
func (n *Node) SetFlapping(all []model.FlappingState) {
	all = slices.Clone(all[:min(len(all), model.MaxFlapping)])
	n.update(func(f *fields) { f.flapping = all })
}

// SetMessage records the problem of the assignments, empty for none, and whether they cannot be read.
func (n *Node) SetMessage(message string, away bool) {
	n.update(func(f *fields) { f.problems.assignments, f.problems.away = message, away })
}

// SetDirectory records the problem of the state directory, empty for none.
func (n *Node) SetDirectory(problem string) {
	n.update(func(f *fields) { f.problems.directory = problem })
}

// SetConfig records the reason for a rejected configuration, empty for none.
func (n *Node) SetConfig(problem string) {
	n.update(func(f *fields) { f.problems.configuration = problem })
}

func (n *Node) setDuplicate(message string) (before string) {
	n.update(func(f *fields) { before, f.problems.duplicate = f.problems.duplicate, message })

	return before
}

// essence returns a state without frequently changing values that can wait for the heartbeat.
func essence(s model.NodeState) string {
	s.At, s.Outbox, s.Clock, s.Manifests = time.Time{}, 0, model.ClockOffset{}, maps.Clone(s.Manifests)
	for _, key := range slices.Collect(maps.Keys(s.Manifests)) {
		m := s.Manifests[key]
		m.At = time.Time{}
		s.Manifests[key] = m
	}
	b, _ := json.Marshal(s) // plain fields always encode

	return string(b)
}

// unstored contains the documents that the server does not store, by the keys of model.NodeState.Unstored.
type unstored map[string]failure

type failure struct {
	since time.Time
	text  string
}

func (u unstored) reasons() map[string]string {
	out := make(map[string]string, len(u))
	for what, f := range u {
		out[what] = fmt.Sprintf("%s not stored since %s: %s", what, f.since.Format(time.RFC3339), f.text)
	}

	return out
}

// SetUnstored records the reason why the server does not store a document; nil removes it.
func (n *Node) SetUnstored(what string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, is := n.unstored[what]
	switch {
	case err == nil:
		delete(n.unstored, what)
	case !is:
		before.since = time.Now().UTC()
		fallthrough
	default:
		before.text = bounds.Text(err.Error())
		n.unstored[what] = before
	}
	if is || err != nil {
		n.Shown.Notify()
	}
}

// Answer returns the state of the node for an answer to a request, with the reasons why it is not stored.
func (n *Node) Answer() model.NodeState {
	s := n.State()
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Unstored = n.unstored.reasons()

	return s
}

// UpdateJoining updates the groups that the node joins, before and after SetRead: the state contains a new
// group only after the node tried to read its assignments. next must not call this node.
func (n *Node) UpdateJoining(next func(joining []string) []string) {
	n.update(func(f *fields) { f.joining = next(f.joining) })
}

// SetRead records the result of reading families of assignments: known were read since the agent started,
// failed could not be read at the last attempt.
func (n *Node) SetRead(known, failed []string) {
	var unread []string
	for _, family := range failed {
		if group, isGroup := strings.CutPrefix(family, model.GroupFamily("")); isGroup {
			unread = append(unread, group)
		}
	}
	n.update(func(f *fields) {
		f.joining = slices.DeleteFunc(slices.Clone(f.joining), func(group string) bool {
			family := model.GroupFamily(group)
			return slices.Contains(known, family) || slices.Contains(failed, family)
		})
		f.unread = unread
	})
}

// maxRejected limits the rejected control documents in the state.
const maxRejected = 50

// SetControl records the active control documents, the reasons for rejected ones by key, and the reason why
// the bucket cannot be read, empty if it can. The caller must not change them later.
func (n *Node) SetControl(paused *model.Paused, by map[string]uint64, labels, rejected map[string]string, unread string) {
	n.update(func(f *fields) {
		f.paused, f.pausedBy, f.labels = paused, by, labels
		f.rejected, f.problems.control, f.problems.unread = firstRejected(rejected), rejectedText(rejected), unread
	})
}

// firstRejected returns the first rejected documents by key with shortened reasons, nil for none.
func firstRejected(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(all))
	out := map[string]string{}
	for _, key := range keys[:min(len(keys), maxRejected)] {
		out[key] = bounds.Text(all[key])
	}

	return out
}

// rejectedText describes the first rejected documents with shortened reasons, empty for none.
func rejectedText(all map[string]string) string {
	const most = 3
	keys := slices.Sorted(maps.Keys(all))
	var out []string
	for _, key := range keys[:min(len(keys), most)] {
		out = append(out, bounds.Text("rejected: "+key+": "+all[key]))
	}
	if len(keys) > most {
		out = append(out, fmt.Sprintf("and %d more", len(keys)-most))
	}

	return strings.Join(out, "; ")
}

// Runs holds the runs in progress, for the status of the agent. Its methods are safe for concurrent
// use.
type Runs struct {
	mu      sync.Mutex
	running map[string]model.RunningRun // by run ID
}

// NewRuns returns Runs without a run.
func NewRuns() *Runs {
	return &Runs{running: map[string]model.RunningRun{}}
}

// Begin adds a run. end removes it.
func (r *Runs) Begin(run model.RunningRun) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[run.RunID] = run

	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, run.RunID)
	}
}

// Wait records the run that blocks a run. An empty blocker means that the run begins.
func (r *Runs) Wait(id, blocker string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run, running := r.running[id]; running && run.WaitsFor != blocker {
		run.WaitsFor, run.Started = blocker, time.Now().UTC()
		r.running[id] = run
	}
}

// Any reports whether a run is in progress.
func (r *Runs) Any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return len(r.running) > 0
}

// Describe adds the runs in progress to out.
func (r *Runs) Describe(out *model.AgentStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out.Running = slices.SortedFunc(maps.Values(r.running), func(a, b model.RunningRun) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.RunID, b.RunID))
	})
	if out.Running == nil {
		out.Running = []model.RunningRun{}
	}
}
