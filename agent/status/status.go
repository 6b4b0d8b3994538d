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

// Node is the state that the node publishes. Make it with New.
type Node struct {
	version, host string
	started       time.Time
	config        func() config.Config
	// waiting returns how many reports wait, maxDocument how long the state may be.
	waiting, maxDocument func() int
	clock                *Clock
	// Changed is notified when the state is another one; Shown too, for another goroutine.
	Changed, Shown tasks.Signal

	mu        sync.Mutex
	manifests map[string]model.ManifestState
	// begun is that the assignments are known that were active when the agent started.
	begun bool
	// well are the keys of which a run went well since the agent started.
	well     map[string]bool
	health   map[string]model.HealthCounts
	problems problems
	watches  int
	polled   int
	flapping []model.FlappingState
	// paused is the pause that holds, labels are those that operators gave.
	paused *model.Paused
	// pausedBy holds the revisions of all pauses in force, by key.
	pausedBy map[string]uint64
	labels   map[string]string
	// joining are groups that operators put the node into lately, whose assignments it has not tried to read yet.
	joining []string
	// unread are the groups that the node could not read at its last attempt.
	unread []string
	// rejected is why what operators wrote is not in force, by key.
	rejected map[string]string
	// stopping is since when the agent shuts down; zero while it does not.
	stopping time.Time
	unstored unstored
}

// problems are texts of what is wrong with the node, empty for nothing.
type problems struct {
	// duplicate names another agent of this node, configuration is why the one on disk
	// is not in force, control why what operators wrote is not, unread why that is not known,
	// watches why resources are polled, directory that the state directory is gone.
	duplicate, configuration, assignments, control, unread, watches, directory string
	// away is that the assignments cannot be read.
	away bool
}

// list returns the problems that there are.
func (p problems) list() []string {
	if p.away {
		p.unread = "" // for the same reason
	}
	all := []string{p.duplicate, p.configuration, p.assignments, p.control, p.unread, p.watches, p.directory}

	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// Wrong returns what is wrong with the node. That resources are polled is not: they are
// looked at as often as they say. Nor is that nobody can pause it.
func (n *Node) Wrong() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	wrong := n.problems
	wrong.watches, wrong.unread = "", ""

	return wrong.list()
}

// String returns all problems in one line.
func (p problems) String() string { return strings.Join(p.list(), "; ") }

// New returns the state of a node that has begun. waiting returns how many reports
// wait, maxDocument how long the state may be.
func New(version string, config func() config.Config, waiting, maxDocument func() int, clock *Clock) *Node {
	host, _ := os.Hostname() // which is only for people

	return &Node{
		version: version, host: host, started: time.Now().UTC(), config: config, waiting: waiting, maxDocument: maxDocument, clock: clock, Changed: tasks.NewSignal(), Shown: tasks.NewSignal(),
		manifests: map[string]model.ManifestState{}, well: map[string]bool{}, health: map[string]model.HealthCounts{}, unstored: unstored{},
	}
}

// Identity returns a state with nothing but the identity of the agent.
func (n *Node) Identity() model.NodeState {
	return model.NodeState{Protocol: model.ProtocolNode, Node: n.config().Node, Host: n.host, Version: n.version, Started: n.started, At: time.Now().UTC(), Groups: []string{}}
}

// State returns the state of the node, bounded so that it can be published.
func (n *Node) State() model.NodeState { return bounds.State(n.Unbounded(), n.maxDocument()) }

// Unbounded returns the state of the node with all its texts.
func (n *Node) Unbounded() model.NodeState {
	c := n.config()
	s := n.Identity()
	s.Groups, s.Outbox = append(s.Groups, c.Groups...), n.waiting()
	s.Clock = n.clock.Offset()
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
	s.Manifests, s.Health, s.Message, s.Watches, s.Polled, s.Flapping = shown(n.manifests), sum(n.health), n.problems.String(), n.watches, n.polled, n.flapping

	return s
}

// Describe fills in the node, what is assigned to it, and what is wrong with it.
func (n *Node) Describe(out *model.AgentStatus) {
	c := n.config()
	out.Node, out.Groups, out.Version, out.Started, out.Outbox = c.Node, append([]string{}, c.Groups...), n.version, n.started, n.waiting()
	n.mu.Lock()
	defer n.mu.Unlock()
	out.Health, out.Notices = sum(n.health), append(n.problems.list(), slices.Sorted(maps.Values(n.unstored.reasons()))...)
	out.Watches, out.Polled, out.Flapping, out.Clock, out.Stopping = n.watches, n.polled, n.flapping, n.clock.Offset(), n.stopping
	out.Paused = n.paused
	out.Manifests = []model.AssignedManifest{}
	for _, key := range slices.Sorted(maps.Keys(n.manifests)) {
		out.Manifests = append(out.Manifests, model.AssignedManifest{Key: key, State: n.manifests[key]})
	}
}

// labels returns the labels of a configuration with those that operators gave, which win.
func labels(configured, given map[string]string) map[string]string {
	if len(given) == 0 {
		return maps.Clone(configured)
	}
	out := map[string]string{}
	maps.Copy(out, configured)
	maps.Copy(out, given)

	return out
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

// update makes a change, which reports whether the state is another one.
func (n *Node) update(change func() (other bool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if change() {
		n.Changed.Notify()
		n.Shown.Notify()
	}
}

// updateManifest is update for one manifest. It notifies Changed only if isSame is false, so that a new time of the last run
// is stored with the next heartbeat.
func (n *Node) updateManifest(key string, change func() (other bool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.manifests[key]
	if !change() {
		return
	}
	n.Shown.Notify()
	if !isSame(before, n.manifests[key]) {
		n.Changed.Notify()
	}
}

// isSame reports whether two states of a manifest differ at most in the time of the last run.
func isSame(a, b model.ManifestState) bool {
	if (a.Ran == nil) != (b.Ran == nil) || a.Ran != nil && *a.Ran != *b.Ran {
		return false
	}
	a.Ran, b.Ran, a.At, b.At = nil, nil, time.Time{}, time.Time{}

	return a == b
}

// SetAssignments takes over the state of each key.
func (n *Node) SetAssignments(states map[string]model.ManifestState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Shown.Notify()
	before := maps.Clone(n.manifests)
	for key, s := range states {
		last, known := n.manifests[key]
		if !known && n.begun {
			last.Ran = &model.RanRevision{}
		}
		n.manifests[key] = withOutcome(s, last)
	}
	gone := func(key string) bool { _, assigned := states[key]; return !assigned }
	maps.DeleteFunc(n.manifests, func(key string, _ model.ManifestState) bool { return gone(key) })
	maps.DeleteFunc(n.well, func(key string, _ bool) bool { return gone(key) })
	maps.DeleteFunc(n.health, func(key string, _ model.HealthCounts) bool { return gone(key) })
	if !n.begun || !maps.EqualFunc(before, n.manifests, isSame) {
		n.Changed.Notify()
	}
	n.begun = true
}

// awaitsRun reports whether a manifest has an active revision of which no run has ended.
func (n *Node) awaitsRun() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.manifests {
		if s.Revision > 0 && s.Outcome == "" && s.Late == "" {
			return true
		}
	}

	return false
}

// Recall takes over of a state that an agent of this node stored before what ran last, where nothing did since this one
// started, and since when manifests fail, unless a run of them went well.
func (n *Node) Recall(stored model.NodeState) {
	n.update(func() (other bool) {
		now := time.Now()
		for key, s := range n.manifests {
			if last, stores := stored.Manifests[key]; stores && s.Revision > 0 && s.Outcome == "" && (s.Ran == nil || s.Ran.Revision == 0) {
				if ran := ranOf(last); ran != nil {
					s.Ran, other = ran, true
					n.manifests[key] = s
				}
			}
			since := stored.Manifests[key].FailedSince
			if since.IsZero() || since.After(now) || n.well[key] || !s.FailedSince.IsZero() && !since.Before(s.FailedSince) {
				continue
			}
			s.FailedSince, other = since, true
			n.manifests[key] = s
		}

		return other
	})
}

// shown returns the states of manifests as they are stored: of one that is not active nothing runs, and what did is kept
// until another revision is.
func shown(all map[string]model.ManifestState) map[string]model.ManifestState {
	out := maps.Clone(all)
	for key, s := range out {
		if s.Revision == 0 && s.Ran != nil {
			s.Ran = nil
			out[key] = s
		}
	}

	return out
}

// withOutcome completes the state of an assignment by what came of its last run.
// Whoever waits for a revision must not take the outcome of an earlier one for its
// own. What fails goes on failing until a run shows otherwise.
func withOutcome(s, last model.ManifestState) model.ManifestState {
	switch {
	case s.Revision == 0:
		s.Ran = ranOf(last)
		return s
	case s.Revision != last.Revision:
		s.FailedSince, s.Ran = last.FailedSince, ranOf(last)
		return s
	}
	last.Seen, last.SeenAt, last.Late = s.Seen, s.SeenAt, s.Late

	return last
}

// ranOf returns what ran last by a state, nil where that is not known.
func ranOf(s model.ManifestState) *model.RanRevision {
	if s.Outcome == "" {
		return s.Ran
	}
	last := s.Last()

	return &last
}

// SetRun takes over what came of a run.
func (n *Node) SetRun(key string, r *model.Run) {
	n.updateManifest(key, func() bool {
		s := n.manifests[key]
		s.Revision, s.Digest, s.Counts = r.Revision, r.Digest, r.Counts
		n.conclude(key, s, r)

		return true
	})
}

// SetPart takes over what came of the run of a part, if it failed or was put off, and
// reports whether the manifest fails by an earlier run although this one did not: its
// numbers are those of its last run as a whole.
func (n *Node) SetPart(key string, r *model.Run) (failsStill bool) {
	n.updateManifest(key, func() bool {
		s := n.manifests[key]
		putOff := !r.RetryAt.IsZero() && s.Outcome != "" && s.Outcome != model.OutcomeFailed
		if r.Outcome() != model.OutcomeFailed && !putOff {
			failsStill = s.Outcome == model.OutcomeFailed
			return false
		}
		n.conclude(key, s, r)

		return true
	})

	return failsStill
}

// SetReason takes over why a manifest fails, if it does: what its last run named first may
// have been repaired since, and another resource not.
func (n *Node) SetReason(key, text string) {
	n.updateManifest(key, func() bool {
		s := n.manifests[key]
		if s.Outcome != model.OutcomeFailed || text == "" || s.Error == text {
			return false
		}
		s.Error = bounds.Text(text)
		n.manifests[key] = s

		return true
	})
}

// SetNoop takes over how many resources of a manifest would be changed and are not, of
// which the run of a part knows more than the last one as a whole.
func (n *Node) SetNoop(key string, count int) {
	n.updateManifest(key, func() bool {
		s := n.manifests[key]
		before := s.Outcome
		switch {
		case count > 0 && (before == model.OutcomeStable || before == model.OutcomeChanged):
			s.Outcome = model.OutcomeNoop
		case count == 0 && before == model.OutcomeNoop:
			s.Outcome = model.OutcomeStable
		case before != model.OutcomeNoop:
			return false
		}
		more := count - s.Counts.Noop
		if more == 0 && s.Outcome == before {
			return false
		}
		s.At = time.Now().UTC()
		s.Counts.Noop += more
		moved := min(more, s.Counts.Stable) // others were changed before
		s.Counts.Changed += moved
		s.Counts.Stable -= moved
		n.manifests[key] = s

		return true
	})
}

// conclude takes over the outcome of a run into the state of a manifest. A run that did not come
// to its end leaves open whether the manifest still fails.
func (n *Node) conclude(key string, s model.ManifestState, r *model.Run) {
	if s = concluded(s, r); s.Outcome != "" {
		s.Ran = nil
	}
	switch s.Outcome {
	case model.OutcomeFailed:
		if s.FailedSince.IsZero() {
			s.FailedSince = s.At
		}
	case "", model.OutcomeNotRun:
	default:
		s.FailedSince, n.well[key] = time.Time{}, true
	}
	n.manifests[key] = s
}

// concluded returns the state of a manifest with the outcome of a run.
func concluded(s model.ManifestState, r *model.Run) model.ManifestState {
	s.Outcome, s.At, s.Error = r.Outcome(), time.Now().UTC(), ""
	switch {
	case len(r.Errors) > 0:
		s.Error = bounds.Text(r.Errors[0])
	case s.Outcome == model.OutcomeNotRun && !r.RetryAt.IsZero():
		// It goes on by itself: whoever waits for it goes on waiting.
		s.Outcome, s.Error = "", fmt.Sprintf("%d of its resources put off by a limit of changes a minute, the next until %s", r.Counts.NotRun, r.RetryAt.UTC().Format(time.TimeOnly+" MST"))
	}

	return s
}

// SetStopping notes that the agent shuts down from now on.
func (n *Node) SetStopping() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopping = time.Now().UTC()
}

// SetWatches takes over how many resources are watched, and how many are polled
// because they cannot be, with the reason of one.
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

// SetFlapping takes over the resources that flap.
func (n *Node) SetFlapping(all []model.FlappingState) {
	all = slices.Clone(all[:min(len(all), model.MaxFlapping)])
	n.update(func() bool {
		other := !slices.Equal(n.flapping, all)
		n.flapping = all

		return other
	})
}

// SetHealth takes over the health checks of a manifest.
func (n *Node) SetHealth(key string, counts model.HealthCounts) {
	n.update(func() bool {
		other := n.health[key] != counts
		n.health[key] = counts

		return other
	})
}

// SetMessage takes over what is wrong with the assignments, empty for nothing, and whether they
// cannot be read.
func (n *Node) SetMessage(message string, away bool) {
	n.update(func() bool {
		other := n.problems.assignments != message || n.problems.away != away
		n.problems.assignments, n.problems.away = message, away

		return other
	})
}

// SetDirectory takes over what is wrong with the state directory, empty for nothing.
func (n *Node) SetDirectory(problem string) { n.set(&n.problems.directory, problem) }

// SetConfig takes over why the configuration on disk was rejected, empty when it was
// not.
func (n *Node) SetConfig(problem string) { n.set(&n.problems.configuration, problem) }

func (n *Node) set(field *string, text string) {
	n.update(func() bool {
		other := *field != text
		*field = text

		return other
	})
}

// setDuplicate takes over that another agent runs as this node, and returns what
// was known before.
func (n *Node) setDuplicate(message string) (before string) {
	n.update(func() bool {
		before, n.problems.duplicate = n.problems.duplicate, message

		return before != message
	})

	return before
}

// essence returns a state without what changes all the time and can wait for the
// heartbeat.
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
