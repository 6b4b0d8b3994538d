package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
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

	mu       sync.Mutex
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
	// stopping is the start of the shutdown, zero before.
	stopping time.Time
	unstored unstored
}

// problems are the texts of the node's problems, empty for none.
type problems struct {
	// duplicate describes another agent of this node, configuration the rejected configuration, control
	// rejected control documents, unread an unreadable control bucket, watches the reason for polling,
	// directory a missing state directory.
	duplicate, configuration, assignments, control, unread, watches, directory string
	// away means that the assignments cannot be read.
	away bool
}

// list returns the present problems.
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
	wrong := n.problems
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
	s.Groups = slices.DeleteFunc(s.Groups, func(g string) bool { return slices.Contains(n.joining, g) })
	for _, g := range s.Groups {
		if slices.Contains(n.unread, g) {
			s.UnreadGroups = append(s.UnreadGroups, g)
		}
	}
	s.Labels, s.Paused, s.PausedBy = labels(c.Labels, n.labels), n.paused, n.pausedBy
	s.RejectedControl = maps.Clone(n.rejected)
	s.Message, s.Watches, s.Polled, s.Flapping = n.problems.String(), n.watches, n.polled, n.flapping

	return s
}

// Describe sets the node, its assignments and its problems.
func (n *Node) Describe(out *model.AgentStatus) {
	c := n.config()
	out.Node, out.Groups, out.Version, out.Started, out.Outbox = c.Node, append([]string{}, c.Groups...), n.version, n.started, n.waiting()
	out.Manifests, out.Health = n.describe()
	n.mu.Lock()
	defer n.mu.Unlock()
	out.Notices = append(n.problems.list(), slices.Sorted(maps.Values(n.unstored.reasons()))...)
	out.Watches, out.Polled, out.Flapping, out.Clock, out.Stopping = n.watches, n.polled, n.flapping, n.clock.Offset(), n.stopping
	out.Paused = n.paused
}

// labels returns the labels of a configuration, overridden by the operators' labels.
func labels(configured, given map[string]string) map[string]string {
	if len(given) == 0 {
		return maps.Clone(configured)
	}
	out := map[string]string{}
	maps.Copy(out, configured)
	maps.Copy(out, given)

	return out
}

// update makes a change. change reports whether the state changed.
func (n *Node) update(change func() (other bool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if change() {
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
	n.update(func() bool {
		other := n.watches != watched || n.polled != polled || n.problems.watches != text
		n.watches, n.polled, n.problems.watches = watched, polled, text

		return other
	})
}

// SetFlapping records the flapping resources.
func (n *Node) SetFlapping(all []model.FlappingState) {
	all = slices.Clone(all[:min(len(all), model.MaxFlapping)])
	n.update(func() bool {
		other := !slices.Equal(n.flapping, all)
		n.flapping = all

		return other
	})
}

// SetMessage records the problem of the assignments, empty for none, and whether they cannot be read.
func (n *Node) SetMessage(message string, away bool) {
	n.update(func() bool {
		other := n.problems.assignments != message || n.problems.away != away
		n.problems.assignments, n.problems.away = message, away

		return other
	})
}

// SetDirectory records the problem of the state directory, empty for none.
func (n *Node) SetDirectory(problem string) { n.set(&n.problems.directory, problem) }

// SetConfig records the reason for a rejected configuration, empty for none.
func (n *Node) SetConfig(problem string) { n.set(&n.problems.configuration, problem) }

func (n *Node) set(field *string, text string) {
	n.update(func() bool {
		other := *field != text
		*field = text

		return other
	})
}

// setDuplicate records another agent of this node, and returns the previous value.
func (n *Node) setDuplicate(message string) (before string) {
	n.update(func() bool {
		before, n.problems.duplicate = n.problems.duplicate, message

		return before != message
	})

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
