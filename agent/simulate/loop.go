package simulate

import (
	"context"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// loop makes the runs, one after the other.
func (n *Node) loop(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-n.changed:
			n.sync(ctx)
		case <-n.controlChanged:
			n.notePause(ctx)
			if !n.known {
				n.sync(ctx)
			}
		case <-n.requests.asked:
			n.requests.answer(ctx)
		case <-n.due:
			n.act(ctx)
		case <-time.After(time.Until(n.timers.next())):
			n.tick(ctx)
		}
		if n.known && n.machine.Kind == KindSilent {
			n.fallSilent(ctx)
			return
		}
	}
}

// sync reads the assignments and runs new ones. It does nothing until the control documents are
// known, because a paused node starts no run.
func (n *Node) sync(ctx context.Context) {
	if !n.control.IsSettled() {
		return
	}
	complete := n.assigned.sync(ctx)
	if complete && !n.known {
		n.known = true
		n.joining.note()
	}
	for _, key := range n.assigned.keys() {
		if !n.assigned.active[key].ran {
			n.runWhole(ctx, key)
		}
	}
}

// fallSilent waits until the node has joined and has published its reports.
func (n *Node) fallSilent(ctx context.Context) {
	select {
	case <-n.joining.done:
	case <-ctx.Done():
	}
	for n.outbox.Len() > 0 && ctx.Err() == nil {
		tasks.Pause(ctx, 10*time.Millisecond, nil)
	}
}

// notePause runs all assignments after a pause, because runs during the pause repaired no drift.
func (n *Node) notePause(ctx context.Context) {
	before := n.paused
	if n.paused = n.runs.observes(); before && !n.paused {
		n.runAll(ctx)
	}
}

// runAll runs all assignments.
func (n *Node) runAll(ctx context.Context) {
	for _, key := range n.assigned.keys() {
		n.runWhole(ctx, key)
	}
}

// runWhole runs the assignment of a key, and takes as long as the script says.
func (n *Node) runWhole(ctx context.Context, key string) {
	cause, observes := n.runs.cause(key), n.runs.observes()
	if n.runs.mayRun(key, observes) && n.took(ctx) {
		n.runs.run(ctx, key, cause, observes)
	}
}

// took waits for the duration of a run, and executes requests during it as an agent does. It reports
// false when ctx ended.
func (n *Node) took(ctx context.Context) bool {
	over := time.After(n.timers.between(n.machine.RunTime/2, n.machine.RunTime))
	for {
		select {
		case <-over:
			return true
		case <-n.requests.asked:
			n.requests.answer(ctx)
		case <-ctx.Done():
			return false
		}
	}
}

// tick simulates the incidents and runs that are due.
func (n *Node) tick(ctx context.Context) {
	if isDue(&n.timers.drift) {
		n.incidents.drift(n.runs.key())
	}
	if isDue(&n.timers.health) {
		n.incidents.check(n.runs.key())
	}
	if isDue(&n.timers.run) {
		n.runAll(ctx)
	}
}

// act makes one report for the rate of the fleet, in most cases of a stable run.
func (n *Node) act(ctx context.Context) {
	switch choice := n.timers.IntN(20); {
	case n.outbox.Len() > maxWaiting:
	case choice == 0:
		n.incidents.drift(n.runs.key())
	case choice == 1:
		n.incidents.check(n.runs.key())
	default:
		n.runs.run(ctx, n.runs.key(), model.CauseSchedule, n.runs.observes())
	}
}

// maxWaiting is the number of waiting reports above which act adds none.
const maxWaiting = 100
