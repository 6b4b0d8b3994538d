package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
)

const (
	// maxDeviations and maxErrors limit the listed resources and errors of a run. The reports contain
	// all of them.
	maxDeviations = 50
	maxErrors     = 10
	maxReason     = 500
)

// Record holds the last result of each resource of one revision of a manifest. A run writes into the
// record of its revision, even after another revision became active. The methods of a record are safe
// for concurrent use.
type Record struct {
	results   *Results
	key       string
	resources map[model.Ref]resourceResult
	// noted counts the results. It orders the deviations.
	noted int
}

type resourceResult struct {
	// outcome, reason and order describe a deviation from the desired state.
	outcome model.Outcome
	reason  string
	order   int
	// failed and differs describe the last attempt: it failed, or it would have made a change. A
	// resource that did not run was not attempted.
	failed, differs bool
	// converged reports whether a requested run converged the resource.
	converged bool
	// inRun reports whether the current full run has a result, and found whether that result
	// deviates.
	inRun, found bool
}

func newRecord(r *Results, key string) *Record {
	return &Record{results: r, key: key, resources: map[model.Ref]resourceResult{}}
}

// Record returns the record of the current revision of a manifest. Set full if a full run begins to
// write into it.
func (r *Results) Record(key string, full bool) *Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.manifests[key]
	if m == nil {
		return newRecord(r, key) // no reader finds this record
	}
	if full {
		m.record.endRun()
	}

	return m.record
}

// endRun ends the comparison of a full run with later results.
func (r *Record) endRun() {
	for ref, result := range r.resources {
		if result.inRun {
			result.inRun = false
			r.resources[ref] = result
		}
	}
}

// Note records a result of a full run, or of a partial run.
func (r *Record) Note(t *model.Transaction, full bool) {
	r.results.mu.Lock()
	defer r.results.mu.Unlock()
	result := r.resources[t.Ref()]
	if !t.NotRun {
		result.failed, result.differs = !t.OK(), t.Outcome() == model.OutcomeNoop
		result.converged = result.converged || !t.Cause.IsUnasked() && t.OK() && !t.Skipped && !result.differs
	}
	if full || !t.NotRun || !t.RetryAt.IsZero() {
		r.noted++
		result.outcome, result.reason, result.order = t.Outcome(), "", r.noted
		if deviates(result.outcome) {
			result.reason = bounds.TextTo(reason(t), maxReason)
		}
	}
	if full {
		result.inRun, result.found = true, deviates(result.outcome)
	}
	r.resources[t.Ref()] = result
	if m := r.results.manifests[r.key]; m != nil {
		m.repair = repairOf(t, m.repair)
	}
}

func deviates(o model.Outcome) bool {
	return o == model.OutcomeFailed || o == model.OutcomeUnmet || o == model.OutcomeNotRun || o == model.OutcomeNoop
}

// repairOf returns the last drift repair; before is the last one before t.
func repairOf(t *model.Transaction, before *model.LastRepair) *model.LastRepair {
	// A refresh follows the repair of another resource.
	if t.Cause != model.CauseDrift || t.Noop || t.Refreshed || !t.Changed && !t.Failed {
		return before
	}
	out := &model.LastRepair{Resource: bounds.TextTo(t.Ref().String(), maxReason), Outcome: t.Outcome(), At: time.Now().UTC()}
	if t.Repaired() {
		out.Latency = model.Duration(t.Drift.Latency)
	}

	return out
}

func reason(t *model.Transaction) string {
	unmet := make([]string, len(t.UnmetRequirements))
	for i, ref := range t.UnmetRequirements {
		unmet[i] = ref.String()
	}
	needs := ""
	if len(unmet) > 0 {
		needs = "requires " + strings.Join(unmet, ", ")
	}

	return cmp.Or(strings.Join(t.Errors, "; "), needs, t.NoopMessage, t.SkipReason)
}

// deviations returns the first resources that are not in their desired state, and the number of the
// others. It prefers resources that ran to resources that did not. The caller holds mu.
func (r *Record) deviations() (first []model.Deviation, more int) {
	var refs []model.Ref
	for ref, result := range r.resources {
		if deviates(result.outcome) {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b model.Ref) int { return cmp.Compare(r.resources[a].order, r.resources[b].order) })
	more = max(len(refs)-maxDeviations, 0)
	excess := more
	for _, ref := range refs {
		result := r.resources[ref]
		if excess > 0 && result.outcome == model.OutcomeNotRun {
			excess--
			continue
		}
		if len(first) < maxDeviations {
			first = append(first, model.Deviation{Resource: bounds.TextTo(ref.String(), maxReason), Outcome: result.outcome, Reason: result.reason})
		}
	}

	return first, more
}

func (r *Record) count(matches func(resourceResult) bool) (count int) {
	for _, result := range r.resources {
		if matches(result) {
			count++
		}
	}

	return count
}

// Failed returns the resources that failed at their last attempt.
func (r *Record) Failed() map[model.Ref]bool {
	return r.refs(func(result resourceResult) bool { return result.failed })
}

// Converged returns the resources that a requested run converged.
func (r *Record) Converged() map[model.Ref]bool {
	return r.refs(func(result resourceResult) bool { return result.converged })
}

func (r *Record) refs(matches func(resourceResult) bool) map[model.Ref]bool {
	r.results.mu.Lock()
	defer r.results.mu.Unlock()
	out := map[model.Ref]bool{}
	for ref, result := range r.resources {
		if matches(result) {
			out[ref] = true
		}
	}

	return out
}

func (r *Record) differing() int {
	return r.count(func(result resourceResult) bool { return result.differs })
}

// IsNews reports whether a full run must be reported: it changed or found something, or it ends a
// failure or a pending change. Other runs only checked for drift.
func (r *Record) IsNews(run *model.Run) bool {
	r.results.mu.Lock()
	defer r.results.mu.Unlock()

	checked := run.Cause == model.CauseDrift && run.Outcome() == model.OutcomeStable && len(run.Errors) == 0
	m := r.results.manifests[r.key]

	return !checked || m == nil || m.state.Outcome == model.OutcomeFailed || m.last != nil && isPending(m.last.Cause, m.last.Outcome)
}

// Conclude records the end of a full run of the active version. news is the result of IsNews. outdated
// reports whether a partial run changed a result during the run.
func (r *Record) Conclude(run *model.Run, news bool) (outdated bool) {
	r.results.update(r.key, func(m *manifestResults) (changed bool) {
		if run.Counts.Total > 0 {
			outdated = r.retainRun()
		}
		if changed = news; news {
			m.state.Revision, m.state.Digest, m.state.Counts = run.Revision, run.Digest, run.Counts
			m.conclude(run)
		} else {
			changed = m.setDiffering(r.differing())
		}
		r.setLast(m, run)
		return changed
	})

	return outdated
}

// retainRun forgets resources that the full run did not find. It reports whether a partial run changed
// a result of the full run.
func (r *Record) retainRun() (outdated bool) {
	for ref, result := range r.resources {
		switch {
		case !result.inRun:
			delete(r.resources, ref)
			continue
		case result.outcome != model.OutcomeNotRun && deviates(result.outcome) != result.found:
			outdated = true
		}
		result.inRun = false
		if r.resources[ref] = result; !deviates(result.outcome) && !result.converged {
			delete(r.resources, ref)
		}
	}

	return outdated
}

// ConcludeFormer records the end of a full run of a version that is no longer active.
func (r *Record) ConcludeFormer(run *model.Run) {
	r.results.mu.Lock()
	defer r.results.mu.Unlock()
	if m := r.results.manifests[r.key]; m != nil {
		r.setLast(m, run)
	}
}

func (r *Record) setLast(m *manifestResults, run *model.Run) {
	m.lastRecord = r
	m.last = &model.LastRun{
		RunID: run.RunID, Revision: run.Revision, Cause: run.Cause, Outcome: run.Outcome(), Started: run.Started,
		Duration: model.Duration(run.Duration), Counts: run.Counts,
	}
	for _, e := range run.Errors[:min(len(run.Errors), maxErrors)] {
		m.last.Errors = append(m.last.Errors, bounds.TextTo(e, maxReason))
	}
}

// ConcludePart records the end of a partial run. It does not change the counts of the last full run.
// stale reports that the state of the manifest is failed and no resource fails: then a full run must
// follow.
func (r *Record) ConcludePart(run *model.Run) (stale bool) {
	r.results.update(r.key, func(m *manifestResults) bool {
		changed := m.setDiffering(r.differing())
		s := &m.state
		putOff := !run.RetryAt.IsZero() && s.Outcome != "" && s.Outcome != model.OutcomeFailed
		switch {
		case run.Outcome() == model.OutcomeFailed || putOff:
			m.conclude(run)
			return true
		case s.Outcome != model.OutcomeFailed:
			return changed
		}
		if stale = r.count(func(result resourceResult) bool { return result.failed }) == 0; stale {
			return changed
		}
		text := m.reason()
		if text == "" || s.Error == text {
			return changed
		}
		s.Error = bounds.Text(text)
		return true
	})

	return stale
}
