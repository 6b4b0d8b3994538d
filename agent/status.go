package agent

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// nodeStatus is the state that the node publishes.
type nodeStatus struct {
	version string
	started time.Time
	config  *settings
	// waiting returns how many reports wait, maxDocument how long the state may be.
	waiting, maxDocument func() int
	// changed is notified when the state is another one.
	changed tasks.Signal

	mu        sync.Mutex
	manifests map[string]model.ManifestState
	health    map[string]model.HealthCounts
	message   string
	// duplicate is that another agent runs as this node.
	duplicate string
}

// identity returns a state with nothing but the identity of the agent.
func (n *nodeStatus) identity() model.NodeState {
	return model.NodeState{Protocol: model.ProtocolNode, Node: n.config.get().Node, Version: n.version, Started: n.started, At: time.Now().UTC(), Groups: []string{}}
}

// state returns the state of the node.
func (n *nodeStatus) state() model.NodeState {
	c := n.config.get()
	s := n.identity()
	s.Groups, s.Labels, s.Outbox = append(s.Groups, c.Groups...), maps.Clone(c.Labels), n.waiting()
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Manifests, s.Health, s.Message = maps.Clone(n.manifests), sum(n.health), cmp.Or(n.duplicate, n.message)

	return bounds.State(s, n.maxDocument())
}

func sum(counts map[string]model.HealthCounts) model.HealthCounts {
	var out model.HealthCounts
	for _, c := range counts {
		out.OK += c.OK
		out.Warning += c.Warning
		out.Critical += c.Critical
		out.Unknown += c.Unknown
	}

	return out
}

// update changes the state.
func (n *nodeStatus) update(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
	n.changed.Notify()
}

// setAssignments takes over the state of each key.
func (n *nodeStatus) setAssignments(states map[string]model.ManifestState) {
	n.update(func() {
		for key, s := range states {
			n.manifests[key] = withOutcome(s, n.manifests[key])
		}
		gone := func(key string) bool { _, assigned := states[key]; return !assigned }
		maps.DeleteFunc(n.manifests, func(key string, _ model.ManifestState) bool { return gone(key) })
		maps.DeleteFunc(n.health, func(key string, _ model.HealthCounts) bool { return gone(key) })
	})
}

// withOutcome completes the state of an assignment by what came of its last run.
// Whoever waits for a revision must not take the outcome of an earlier one for its
// own.
func withOutcome(s, last model.ManifestState) model.ManifestState {
	if s.Revision == 0 || s.Revision != last.Revision {
		return s
	}
	last.Seen, last.Late = s.Seen, s.Late

	return last
}

// setRun takes over what came of a run.
func (n *nodeStatus) setRun(key string, r *model.Run) {
	n.update(func() {
		s := n.manifests[key]
		s.Revision, s.Digest, s.Outcome, s.At, s.Counts, s.Error = r.Revision, r.Digest, r.Outcome(), time.Now().UTC(), r.Counts, ""
		if len(r.Errors) > 0 {
			s.Error = bounds.Text(r.Errors[0])
		}
		n.manifests[key] = s
	})
}

// setHealth takes over the health checks of a manifest.
func (n *nodeStatus) setHealth(key string, counts model.HealthCounts) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.health[key] != counts {
		n.health[key] = counts
		n.changed.Notify()
	}
}

func (n *nodeStatus) setMessage(message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.message != message {
		n.message = message
		n.changed.Notify()
	}
}

// setDuplicate takes over that another agent runs as this node, and returns what
// was known before.
func (n *nodeStatus) setDuplicate(message string) (before string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.duplicate = n.duplicate, message

	return before
}

// essence returns a state without what changes all the time and can wait for the
// heartbeat.
func essence(s model.NodeState) string {
	s.At, s.Outbox, s.Manifests = time.Time{}, 0, maps.Clone(s.Manifests)
	for _, key := range slices.Collect(maps.Keys(s.Manifests)) {
		m := s.Manifests[key]
		m.At = time.Time{}
		s.Manifests[key] = m
	}
	b, _ := json.Marshal(s) // plain fields always encode

	return string(b)
}
