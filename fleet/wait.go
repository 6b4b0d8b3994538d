package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
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
	// Later, if set, gives the digests of the revisions of a key. It is asked where a
	// node names a higher revision than is known.
	Later func(ctx context.Context, key string) (map[uint64]string, error)
	// Once looks once and waits for nothing.
	Once bool
	// OnChange, if set, is told of each standing that is new or has changed.
	OnChange func(Standing)
}

// Wait returns when every target of the goal runs its revision or a later one,
// and gives how all of them stand, also with an error: ErrLate when ctx ended
// before, ErrRefused when waiting longer is of no use, ErrNoNodes.
func (w *Waiter) Wait(ctx context.Context, goal Goal) ([]Standing, error) {
	told, asked := map[string]Standing{}, map[place]bool{}
	goal.Later = maps.Clone(goal.Later)
	if goal.Later == nil {
		goal.Later = map[string]map[uint64]string{}
	}
	var last []Standing
	for {
		began := time.Now()
		nodes, err := w.Nodes.Nodes(ctx)
		if err == nil {
			err = w.learn(ctx, &goal, nodes, asked)
		}
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

// learn completes what a goal knows of later revisions. For each that a node
// names it asks once: a node does not know of it before the bucket does.
func (w *Waiter) learn(ctx context.Context, goal *Goal, nodes []model.Node, asked map[place]bool) error {
	for _, e := range goal.Entries {
		news := false
		for _, n := range nodes {
			m := n.Manifests[e.Key]
			for _, revision := range []uint64{m.Revision, m.Seen} {
				if at := (place{e.Key, revision}); revision > e.Revision && !asked[at] {
					asked[at], news = true, true
				}
			}
		}
		if w.Later == nil || !news {
			continue
		}
		later, err := w.Later(ctx, e.Key)
		if err != nil {
			return err
		}
		goal.Later[e.Key] = later
	}

	return nil
}

// place is a revision of a key.
type place struct {
	key      string
	revision uint64
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
