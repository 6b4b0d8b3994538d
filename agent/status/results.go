package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// Results is the only record of run results: the published outcome of each manifest, its last run,
// and the last result of each resource. The runner writes it while it holds the lock of the agent's
// state. All other components read it and store no copy. Its methods are safe for concurrent use.
type Results struct {
	// Changed is notified if the node must store its state, Shown if it must show it.
	Changed, Shown tasks.Signal

	mu        sync.Mutex
	manifests map[string]*manifestResults
	// begun reports whether SetAssignments was called.
	begun bool
}

type manifestResults struct {
	state  model.ManifestState
	health model.HealthCounts
	// succeeded reports whether a run succeeded since the agent started.
	succeeded bool
	// record holds the results of the current revision.
	record *Record
	// last is the last full run without its deviations, which are in lastRecord. It is nil before
	// the first run ends.
	last       *model.LastRun
	lastRecord *Record
	// repair is the last drift repair, nil before the first.
	repair *model.LastRepair
}

// of returns the results of a manifest. The caller holds mu.
func (r *Results) of(key string) *manifestResults {
	m := r.manifests[key]
	if m == nil {
		m = &manifestResults{}
		m.record = newRecord(r, key)
		r.manifests[key] = m
	}

	return m
}

// update calls change for a manifest and notifies Shown if change returns true. It notifies Changed
// only if isSame is false, so that the next heartbeat stores a new time of the last run.
func (r *Results) update(key string, change func(m *manifestResults) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.of(key)
	before := m.state
	if !change(m) {
		return
	}
	r.Shown.Notify()
	if !isSame(before, m.state) {
		r.Changed.Notify()
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

// SetAssignments replaces the assigned manifests and forgets the results of all others.
func (r *Results) SetAssignments(states map[string]model.ManifestState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Shown.Notify()
	changed := !r.begun
	for key := range r.manifests {
		if _, assigned := states[key]; !assigned {
			delete(r.manifests, key)
			changed = true
		}
	}
	for key, s := range states {
		_, known := r.manifests[key]
		m := r.of(key)
		before := m.state
		if !known && r.begun {
			m.state.Ran = &model.RanRevision{}
		}
		m.state = withOutcome(s, m.state)
		changed = changed || !known || !isSame(before, m.state)
	}
	if changed {
		r.Changed.Notify()
	}
	r.begun = true
}

// Activate forgets the results of the resources of a manifest, because another version is active.
func (r *Results) Activate(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(key).record = newRecord(r, key)
}

// SetHealth replaces the counts of the health checks of a manifest.
func (r *Results) SetHealth(key string, counts model.HealthCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, known := r.manifests[key]; counts == (model.HealthCounts{}) && (!known || m.health == counts) {
		return
	}
	if m := r.of(key); m.health != counts {
		m.health = counts
		r.Changed.Notify()
		r.Shown.Notify()
	}
}

// Pending reports whether a requested change is not made yet, and whether the last attempt failed.
// The next run of the manifest is then not a drift check.
func (r *Results) Pending(key string) (pending, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.manifests[key]
	if m == nil || m.last == nil {
		return false, false
	}

	return isPending(m.last.Cause, m.last.Outcome), m.last.Outcome == model.OutcomeFailed
}

// isPending reports whether a run leaves a requested change to a later run.
func isPending(cause model.Cause, outcome model.Outcome) bool {
	return outcome.IsFailure() && !cause.IsUnasked()
}

// awaitsRun reports whether a manifest has an active revision and no run of it has ended.
func (r *Results) awaitsRun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.manifests {
		if s := m.state; s.Revision > 0 && s.Outcome == "" && s.Late == "" {
			return true
		}
	}

	return false
}

// states returns the published state of each manifest, and the sum of the health checks. A manifest
// without an active revision shows no last run; Results remembers it until another revision runs.
func (r *Results) states() (states map[string]model.ManifestState, health model.HealthCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	states = make(map[string]model.ManifestState, len(r.manifests))
	for key, m := range r.manifests {
		s := m.state
		if s.Revision == 0 {
			s.Ran = nil
		}
		states[key] = s
	}

	return states, r.sumHealth()
}

func (r *Results) sumHealth() (sum model.HealthCounts) {
	for _, m := range r.manifests {
		sum.OK += m.health.OK
		sum.Warning += m.health.Warning
		sum.Critical += m.health.Critical
		sum.Unknown += m.health.Unknown
	}

	return sum
}

// describe returns the assigned manifests with their last runs, sorted by key, and the sum of the health
// checks.
func (r *Results) describe() (out []model.AssignedManifest, health model.HealthCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out = make([]model.AssignedManifest, 0, len(r.manifests))
	for _, key := range slices.Sorted(maps.Keys(r.manifests)) {
		m := r.manifests[key]
		assigned := model.AssignedManifest{Key: key, State: m.state}
		if m.last != nil {
			last := *m.last
			last.Deviations, last.More = m.lastRecord.deviations()
			last.Repair = m.repair
			assigned.Last = &last
		}
		out = append(out, assigned)
	}

	return out, r.sumHealth()
}

// Recall restores facts from a state that an earlier agent of this node stored: the revision that ran
// last, if no run has ended since this agent started, and the time since when a manifest fails, if no
// run has succeeded.
func (r *Results) Recall(stored model.NodeState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, changed := time.Now(), false
	for key, m := range r.manifests {
		s := &m.state
		if last, known := stored.Manifests[key]; known && s.Revision > 0 && s.Outcome == "" && (s.Ran == nil || s.Ran.Revision == 0) {
			if ran := ranOf(last); ran != nil {
				s.Ran, changed = ran, true
			}
		}
		since := stored.Manifests[key].FailedSince
		if since.IsZero() || since.After(now) || m.succeeded || !s.FailedSince.IsZero() && !since.Before(s.FailedSince) {
			continue
		}
		s.FailedSince, changed = since, true
	}
	if changed {
		r.Changed.Notify()
		r.Shown.Notify()
	}
}

// withOutcome returns the state of an assignment with the outcome of its last run. A new revision has
// no outcome until it runs. A manifest fails until a run succeeds.
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

// ranOf returns the revision that ran last, nil if it is unknown.
func ranOf(s model.ManifestState) *model.RanRevision {
	if s.Outcome == "" {
		return s.Ran
	}
	last := s.Last()

	return &last
}

// conclude records the outcome of a run. A run that ended early does not tell whether the manifest
// still fails.
func (m *manifestResults) conclude(run *model.Run) {
	s := concluded(m.state, run)
	if s.Outcome != "" {
		s.Ran = nil
	}
	switch s.Outcome {
	case model.OutcomeFailed:
		if s.FailedSince.IsZero() {
			s.FailedSince = s.At
		}
	case "", model.OutcomeNotRun:
	default:
		s.FailedSince, m.succeeded = time.Time{}, true
	}
	m.state = s
}

// concluded returns the state of a manifest with the outcome of a run.
func concluded(s model.ManifestState, run *model.Run) model.ManifestState {
	s.Outcome, s.At, s.Error = run.Outcome(), time.Now().UTC(), ""
	switch {
	case len(run.Errors) > 0:
		s.Error = bounds.Text(run.Errors[0])
	case s.Outcome == model.OutcomeNotRun && !run.RetryAt.IsZero():
		// The agent resumes the run. Commands that wait for the outcome must wait for that run.
		s.Outcome, s.Error = "", fmt.Sprintf("%d of its resources put off by a limit of changes a minute, the next until %s", run.Counts.NotRun, run.RetryAt.UTC().Format(time.TimeOnly+" MST"))
	}

	return s
}

// setDiffering records how many resources a run would change but must not. It reports whether the
// state changed.
func (m *manifestResults) setDiffering(count int) bool {
	s := &m.state
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
	moved := min(more, s.Counts.Stable) // the run before changed the others
	s.Counts.Changed += moved
	s.Counts.Stable -= moved

	return true
}

// reason returns why the manifest fails: the first failed resource, with its place in the manifest if
// the last full run reported it. It is empty if no resource is known to fail.
func (m *manifestResults) reason() string {
	if m.last == nil {
		return ""
	}
	all, _ := m.record.deviations()
	at := slices.IndexFunc(all, func(d model.Deviation) bool { return d.Outcome == model.OutcomeFailed })
	if at < 0 {
		return ""
	}
	failed := all[at].Resource + ": " + all[at].Reason
	if at := slices.IndexFunc(m.last.Errors, func(e string) bool { return strings.Contains(e, failed) }); at >= 0 {
		return m.last.Errors[at]
	}

	return failed
}
