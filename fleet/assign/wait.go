package assign

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// NodeLister lists the nodes.
type NodeLister interface {
	// Nodes returns all nodes by name, including unreachable ones.
	Nodes(ctx context.Context) ([]model.Node, error)
}

// defaultPause is the pause between two polls of the nodes.
const defaultPause = 500 * time.Millisecond

// pausesPerPoll relieves the server of a large fleet, where a poll takes long. A poll also takes long while a
// server is away, and its result must not be old.
const (
	pausesPerPoll = 5
	longestPause  = 5 * time.Second
)

// Waiter waits for nodes.
type Waiter struct {
	Nodes NodeLister
	// Pause is the pause between two polls; 0 means half a second.
	Pause time.Duration
	// Later, if set, returns the digests of the revisions of a key. It is called for a node with an unknown
	// higher revision.
	Later func(ctx context.Context, key string) (map[uint64]string, error)
	// Once polls once and does not wait.
	Once bool
	// LeaveUnreachable ends the wait if the remaining nodes were unreachable in every poll, or are paused for
	// longer than the wait. Nodes that become unreachable during the wait may be restarting, so the wait
	// continues for them.
	LeaveUnreachable bool
	// MayLeave, if set, is called before LeaveUnreachable ends the wait. If it returns false, the wait
	// continues.
	MayLeave func(ctx context.Context) bool
	// OnPoll, if set, receives the statuses of each poll.
	OnPoll func([]fleet.RolloutStatus)
	// Check, if set, is called before each poll. Its error ends the wait like an error of a poll.
	Check func(ctx context.Context) error
	// IsTransient, if set, reports whether the error of a poll is temporary, as in an outage. The wait then
	// continues.
	IsTransient func(error) bool
}

// Poll calls poll until it reports true or fails, or ctx ends, and returns the last error. It continues after an error for
// which isTransient, if set, returns true. The pause grows with the duration of the last successful call.
func Poll(ctx context.Context, pause time.Duration, isTransient func(error) bool, poll func() (done bool, err error)) error {
	for {
		began := time.Now()
		done, err := poll()
		if done || err != nil && (isTransient == nil || !isTransient(err)) {
			return err
		}
		next := pause
		if err == nil {
			next = max(pause, min(pausesPerPoll*time.Since(began), longestPause))
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(next):
		}
	}
}

// Retry calls f until it succeeds, fails with an error that is not temporary, or ctx ends, and returns the last error.
func Retry(ctx context.Context, isTransient func(error) bool, f func() error) error {
	return Poll(ctx, defaultPause, isTransient, func() (bool, error) {
		err := f()
		return err == nil, err
	})
}

// Wait waits until every target of the rollout runs its revision or a later one, no further change is
// possible, or ctx ends, and returns the last statuses. It returns the error of a poll. A temporary error
// counts only if no poll succeeded.
func (w *Waiter) Wait(ctx context.Context, r fleet.Rollout) ([]fleet.RolloutStatus, error) {
	asked, reached := map[revisionOf]bool{}, map[string]bool{}
	r.Later = maps.Clone(r.Later)
	if r.Later == nil {
		r.Later = map[string]map[uint64]string{}
	}
	var last []fleet.RolloutStatus
	isTransient := w.IsTransient
	if w.Once {
		isTransient = nil
	}
	err := Poll(ctx, cmp.Or(w.Pause, defaultPause), isTransient, func() (bool, error) {
		nodes, err := w.nodes(ctx)
		if err == nil {
			err = w.learn(ctx, r, nodes, asked)
		}
		if err != nil {
			return false, err
		}
		last = r.Statuses(nodes)
		if w.OnPoll != nil {
			w.OnPoll(last)
		}

		return w.isSettled(ctx, last, reached) || w.Once, nil
	})
	if ctx.Err() != nil && last != nil {
		err = nil
	}

	return last, err
}

// nodes calls Check and returns all nodes.
func (w *Waiter) nodes(ctx context.Context) ([]model.Node, error) {
	if w.Check != nil {
		if err := w.Check(ctx); err != nil {
			return nil, err
		}
	}

	return w.Nodes.Nodes(ctx)
}

// isSettled reports whether each status is final until another push. It adds the reachable nodes to reached.
func (w *Waiter) isSettled(ctx context.Context, statuses []fleet.RolloutStatus, reached map[string]bool) bool {
	for _, s := range statuses {
		if s.Status != fleet.StatusUnreachable {
			reached[s.Node] = true
		}
	}

	var unreachable []string
	for _, s := range statuses {
		switch {
		case s.Done() || s.Status == fleet.StatusRejected || w.LeaveUnreachable && staysPaused(ctx, s.Paused):
		case w.LeaveUnreachable && s.Status == fleet.StatusUnreachable && !reached[s.Node]:
			unreachable = append(unreachable, s.Node)
		default:
			return false
		}
	}
	if len(unreachable) == 0 || w.Once || w.MayLeave == nil || w.MayLeave(ctx) {
		return true
	}
	for _, node := range unreachable {
		reached[node] = true
	}

	return false
}

// staysPaused reports whether a pause outlasts the deadline of the wait.
func staysPaused(ctx context.Context, p *model.Paused) bool {
	deadline, isLimited := ctx.Deadline()
	return p != nil && (p.Until.IsZero() || isLimited && p.Until.After(deadline))
}

// revisionOf identifies a revision of a key.
type revisionOf struct {
	key      string
	revision uint64
}

// learn adds later revisions to a rollout. It asks once for each revision that a node names, because a node
// never knows a revision before the bucket.
func (w *Waiter) learn(ctx context.Context, r fleet.Rollout, nodes []model.Node, asked map[revisionOf]bool) error {
	for _, e := range r.Entries {
		var news []revisionOf
		for _, n := range nodes {
			m := n.Manifests[e.Key]
			for _, revision := range []uint64{m.Revision, m.Seen} {
				if id := (revisionOf{e.Key, revision}); revision > e.Revision && !asked[id] {
					news = append(news, id)
				}
			}
		}
		if w.Later == nil || len(news) == 0 {
			continue
		}
		later, err := w.Later(ctx, e.Key)
		if err != nil {
			return err
		}
		r.Later[e.Key] = later
		for _, id := range news { // after the answer
			asked[id] = true
		}
	}

	return nil
}
