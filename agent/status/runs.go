package status

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
)

const (
	// maxDeviations is how many resources of a run are listed, and maxErrors how many
	// errors: the reports have all.
	maxDeviations = 50
	maxErrors     = 10
	// maxReason is the most bytes of a reason.
	maxReason = 500
)

// Runs keeps what administrators are shown of runs: those in progress, and the last one
// of each manifest. Its methods may be called from several goroutines. Make it with
// NewRuns.
type Runs struct {
	mu sync.Mutex
	// running are by the id of the run, last by key.
	running map[string]model.RunningRun
	last    map[string]*model.LastRun
}

// Deviations are the resources of one run that are not in their desired state, and its last
// repair of drift. They are for one goroutine at a time; the zero value has none.
type Deviations struct {
	first  []model.Deviation
	more   int
	repair *model.LastRepair
}

// NewRuns returns Runs without any.
func NewRuns() *Runs {
	return &Runs{running: map[string]model.RunningRun{}, last: map[string]*model.LastRun{}}
}

// Begin notes that a run is in progress until end.
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

// Wait notes what the run with an id waits for, empty for nothing: then it begins.
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

// Note notes a result of the run. Of more than are listed, what failed is rather than what
// only was not run.
func (d *Deviations) Note(t *model.Transaction) {
	d.repair = repairOf(t, d.repair)
	if !Deviates(t) {
		return
	}
	if len(d.first) == maxDeviations {
		d.more++
		at := slices.IndexFunc(d.first, func(d model.Deviation) bool { return d.Outcome == model.OutcomeNotRun })
		if at < 0 || t.NotRun {
			return
		}
		d.first = slices.Delete(d.first, at, at+1)
	}
	d.first = append(d.first, deviation(t))
}

// Deviates reports whether a resource is not in its desired state.
func Deviates(t *model.Transaction) bool { return !t.OK() || t.Outcome() == model.OutcomeNoop }

func deviation(t *model.Transaction) model.Deviation {
	return model.Deviation{Resource: bounds.TextTo(t.Ref().String(), maxReason), Outcome: t.Outcome(), Reason: bounds.TextTo(reason(t), maxReason)}
}

// Update takes over the result of a resource in a run of a part of a manifest: the rest
// is as its last run as a whole found it.
func (r *Runs) Update(key string, t *model.Transaction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last[key]
	if last == nil || t.NotRun && t.RetryAt.IsZero() {
		return
	}
	now := deviation(t)
	list := slices.DeleteFunc(slices.Clone(last.Deviations), func(d model.Deviation) bool { return d.Resource == now.Resource })
	if Deviates(t) && len(list) < maxDeviations {
		list = append(list, now)
	}
	updated := *last
	updated.Deviations, updated.Repair = list, repairOf(t, last.Repair)
	r.last[key] = &updated
}

// repairOf returns the last repair of drift, of which before was the one until now.
func repairOf(t *model.Transaction, before *model.LastRepair) *model.LastRepair {
	// What subscribes to a resource was refreshed for its repair.
	if t.Cause != model.CauseDrift || t.Noop || t.Refreshed || !t.Changed && !t.Failed {
		return before
	}
	out := &model.LastRepair{Resource: bounds.TextTo(t.Ref().String(), maxReason), Outcome: t.Outcome(), At: time.Now().UTC()}
	if t.Repaired() {
		out.Latency = model.Duration(t.Drift.Latency)
	}

	return out
}

// reason returns why a resource is not in its desired state.
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

// Conclude takes over the summary of a run, and what it found, as the last one of a
// manifest.
func (r *Runs) Conclude(key string, s *model.Run, found Deviations) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := &model.LastRun{
		RunID: s.RunID, Revision: s.Revision, Cause: s.Cause, Outcome: s.Outcome(), Started: s.Started,
		Duration: model.Duration(s.Duration), Counts: s.Counts, Deviations: found.first, More: found.more,
	}
	for _, e := range s.Errors[:min(len(s.Errors), maxErrors)] {
		last.Errors = append(last.Errors, bounds.TextTo(e, maxReason))
	}
	last.Repair = found.repair
	if before := r.last[key]; before != nil && before.Repair != nil {
		// That of the run of a part beside this one may be the later of the two.
		if last.Repair == nil || before.Repair.At.After(last.Repair.At) {
			last.Repair = before.Repair
		}
	}
	r.last[key] = last
}

// Reason returns why a manifest fails: the first of what is known to have failed and was not
// repaired since, empty for none.
func (r *Runs) Reason(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last[key]
	if last == nil {
		return ""
	}
	at := slices.IndexFunc(last.Deviations, func(d model.Deviation) bool { return d.Outcome == model.OutcomeFailed })
	if at < 0 {
		return ""
	}
	failed := last.Deviations[at].Resource + ": " + last.Deviations[at].Reason
	// With its place, where the last run as a whole has that.
	if at := slices.IndexFunc(last.Errors, func(e string) bool { return strings.Contains(e, failed) }); at >= 0 {
		return last.Errors[at]
	}

	return failed
}

// Forget drops the last run of a manifest that is not assigned any more.
func (r *Runs) Forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, key)
}

// Describe fills in the runs in progress, and the last run of each manifest in out.
func (r *Runs) Describe(out *model.AgentStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out.Running = slices.SortedFunc(maps.Values(r.running), func(a, b model.RunningRun) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.RunID, b.RunID))
	})
	if out.Running == nil {
		out.Running = []model.RunningRun{}
	}
	for i := range out.Manifests {
		out.Manifests[i].Last = r.last[out.Manifests[i].Key]
	}
}
