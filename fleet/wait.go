package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// The errors of Wait; the statuses have the details.
var (
	// ErrPending is a timeout before all targets were up to date.
	ErrPending = errors.New("not all nodes are up to date")
	// ErrRejected is that all targets that are not up to date rejected the revision.
	ErrRejected = errors.New("rejected")
	// ErrNoNodes is an assignment that matches no known node.
	ErrNoNodes = errors.New("no known node matches")
)

// DefaultPause is the pause between two polls of the nodes.
const DefaultPause = 500 * time.Millisecond

// pausesPerPoll relieves the server where a fleet is so large that a poll takes
// long.
const pausesPerPoll = 5

// Waiter waits for nodes.
type Waiter struct {
	Nodes NodeLister
	// Pause between two polls; 0 is DefaultPause.
	Pause time.Duration
	// Later, if set, returns the digests of the revisions of a key. It is called
	// for a node with a higher revision than is known.
	Later func(ctx context.Context, key string) (map[uint64]string, error)
	// Once polls once and does not wait.
	Once bool
	// OnChange, if set, gets each status that is new or has changed.
	OnChange func(RolloutStatus)
}

// Wait waits until every target of the rollout runs its revision or a later one,
// and returns all statuses, also with an error: ErrPending when ctx ended before,
// ErrRejected when waiting cannot help, ErrNoNodes.
func (w *Waiter) Wait(ctx context.Context, r Rollout) ([]RolloutStatus, error) {
	shown, asked := map[string]RolloutStatus{}, map[revisionOf]bool{}
	r.Later = maps.Clone(r.Later)
	if r.Later == nil {
		r.Later = map[string]map[uint64]string{}
	}
	pause := w.Pause
	if pause == 0 {
		pause = DefaultPause
	}
	var last []RolloutStatus
	for {
		began := time.Now()
		nodes, err := w.Nodes.Nodes(ctx)
		if err == nil {
			err = w.learn(ctx, r, nodes, asked)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return last, ErrPending
		case err != nil:
			return last, err
		}
		last = r.Statuses(nodes)
		w.notify(last, shown)
		if done, err := verdict(last); done {
			return last, err
		}
		if w.Once || !sleep(ctx, max(pause, pausesPerPoll*time.Since(began))) {
			return last, ErrPending
		}
	}
}

// revisionOf is a revision of a key.
type revisionOf struct {
	key      string
	revision uint64
}

// learn completes the later revisions of a rollout. It asks once for each that a
// node names: a node does not know of it before the bucket does.
func (w *Waiter) learn(ctx context.Context, r Rollout, nodes []model.Node, asked map[revisionOf]bool) error {
	for _, e := range r.Entries {
		news := false
		for _, n := range nodes {
			m := n.Manifests[e.Key]
			for _, revision := range []uint64{m.Revision, m.Seen} {
				if id := (revisionOf{e.Key, revision}); revision > e.Revision && !asked[id] {
					asked[id], news = true, true
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
		r.Later[e.Key] = later
	}

	return nil
}

func (w *Waiter) notify(statuses []RolloutStatus, shown map[string]RolloutStatus) {
	for _, s := range statuses {
		id := s.Node + " " + s.Key
		before := shown[id]
		if w.OnChange != nil && (before.Status != s.Status || before.Current != s.Current || before.Reason != s.Reason) {
			w.OnChange(s)
		}
		shown[id] = s
	}
}

// verdict reports whether waiting is over, and how it ended.
func verdict(statuses []RolloutStatus) (done bool, err error) {
	open := slices.DeleteFunc(slices.Clone(statuses), RolloutStatus.Done)
	switch {
	case len(statuses) == 0:
		return true, ErrNoNodes
	case len(open) == 0:
		return true, nil
	case slices.ContainsFunc(open, func(s RolloutStatus) bool { return s.Status != StatusRejected }):
		return false, nil
	default:
		return true, ErrRejected
	}
}

// sleep reports whether the time passed before ctx ended.
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
