package status

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

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
