package fleet

import (
	"context"
	"errors"
	"slices"
	"time"
)

// The errors of Wait; what is behind them is in the standings.
var (
	// ErrLate is that the time was over before every target had arrived.
	ErrLate = errors.New("not every node runs the revision")
	// ErrRefused is that all targets that have not arrived refuse the revision.
	ErrRefused = errors.New("refused")
	// ErrNoNodes is that no node is known that it is for.
	ErrNoNodes = errors.New("no node is known that this is for")
)

// DefaultPause is how long is waited between two looks at the nodes.
const DefaultPause = 500 * time.Millisecond

// pausesPerLook keeps the server from being asked without pause where a fleet
// is so large that a look takes long.
const pausesPerLook = 5

// Waiter waits for nodes.
type Waiter struct {
	Nodes NodeLister
	// Pause between two looks; 0 is DefaultPause.
	Pause time.Duration
	// Once looks once and waits for nothing.
	Once bool
	// OnChange, if set, is told of each standing that is new or has changed.
	OnChange func(Standing)
}

// Wait returns when every target of the goal runs its revision or a later one,
// and gives how all of them stand, also with an error: ErrLate when ctx ended
// before, ErrRefused when waiting longer is of no use, ErrNoNodes.
func (w *Waiter) Wait(ctx context.Context, goal Goal) ([]Standing, error) {
	told := map[string]Standing{}
	var last []Standing
	for {
		began := time.Now()
		nodes, err := w.Nodes.Nodes(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return last, ErrLate
		case err != nil:
			return last, err
		}
		last = goal.Standings(nodes)
		w.tell(last, told)
		if done, err := verdict(last); done {
			return last, err
		}
		if w.Once || !sleep(ctx, max(w.pause(), pausesPerLook*time.Since(began))) {
			return last, ErrLate
		}
	}
}

func (w *Waiter) pause() time.Duration {
	if w.Pause == 0 {
		return DefaultPause
	}

	return w.Pause
}

func (w *Waiter) tell(standings []Standing, told map[string]Standing) {
	for _, s := range standings {
		id := s.Node + " " + s.Key
		before := told[id]
		if w.OnChange != nil && (before.Stand != s.Stand || before.Has != s.Has || before.Why != s.Why) {
			w.OnChange(s)
		}
		told[id] = s
	}
}

// verdict says whether waiting is over, and how it ended.
func verdict(standings []Standing) (done bool, err error) {
	pending := func(s Standing) bool { return !s.Done() }
	hopeful := func(s Standing) bool { return pending(s) && s.Stand != StandRefused }
	switch {
	case len(standings) == 0:
		return true, ErrNoNodes
	case slices.ContainsFunc(standings, hopeful):
		return false, nil
	case slices.ContainsFunc(standings, pending):
		return true, ErrRefused
	default:
		return true, nil
	}
}

// sleep says whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
