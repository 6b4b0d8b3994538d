package runner

import (
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// Running holds the runs in progress and the lock of the agent's state. Each run has a goroutine. Runs
// and the agent loop hold the lock only to read and write shared state, never while they wait for NATS,
// templates or the disk.
type Running struct {
	// Lanes decides which runs may work at the same time. The lock guards it.
	Lanes *Lanes
	// lock is a channel and not a mutex, so that tests with synctest can wait for it.
	lock chan struct{}
	// after holds the functions to call after Unlock.
	after []func()
	all   sync.WaitGroup
	// ended is notified after each run.
	ended tasks.Signal
}

// NewRunning returns a Running without runs. It notifies ended after each run.
func NewRunning(ended tasks.Signal) *Running {
	return &Running{Lanes: NewLanes(), lock: make(chan struct{}, 1), ended: ended}
}

// Lock locks the agent's state.
func (r *Running) Lock() { r.lock <- struct{}{} }

// Unlock unlocks the agent's state. Then it calls the functions of After in order.
func (r *Running) Unlock() {
	after := r.after
	r.after = nil
	<-r.lock
	for _, f := range after {
		f()
	}
}

// After calls f after the next Unlock, in the same goroutine. Use it for disk work. The caller holds the
// lock.
func (r *Running) After(f func()) { r.after = append(r.after, f) }

// Do calls f with the lock.
func (r *Running) Do(f func()) {
	r.Lock()
	defer r.Unlock()
	f()
}

// Begin starts a run in a goroutine, behind the runs that began before. part lists its resources; nil is
// a full run. The caller holds the lock.
func (r *Running) Begin(kind Kind, key string, part []model.Ref, run func(*Lane)) {
	lane := r.Lanes.Enter(kind, key, time.Now())
	lane.Part = part
	r.all.Go(func() {
		defer func() {
			r.Do(lane.Leave)
			r.ended.Notify()
		}()
		run(lane)
	})
}

// IsEmpty reports whether no run is in progress. The caller holds the lock.
func (r *Running) IsEmpty() bool {
	return r.Lanes.Len(Manifest)+r.Lanes.Len(Part)+r.Lanes.Len(Request) == 0
}

// Wait waits until all runs have ended. No run may begin during the wait.
func (r *Running) Wait() { r.all.Wait() }

// blocked returns nil if no run blocks a run, and otherwise a channel that is closed when that may have
// changed.
func (r *Running) blocked(lane *Lane) <-chan struct{} {
	r.Lock()
	defer r.Unlock()
	if lane.Blocker() == nil {
		return nil
	}

	return r.Lanes.Changed()
}
