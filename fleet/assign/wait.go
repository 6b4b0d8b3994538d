package assign

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// NodeLister knows the nodes.
type NodeLister interface {
	// Nodes returns all nodes by name, also unreachable ones.
	Nodes(ctx context.Context) ([]model.Node, error)
}

// defaultPause is the pause between two polls of the nodes.
const defaultPause = 500 * time.Millisecond

// pausesPerPoll relieves the server where a fleet is so large that a poll takes
// long. A poll takes long, too, while a server is away: what is known must not be old for that.
const (
	pausesPerPoll = 5
	longestPause  = 5 * time.Second
)

// Waiter waits for nodes.
type Waiter struct {
	Nodes NodeLister
	// Pause between two polls; 0 is half a second.
	Pause time.Duration
	// Later, if set, returns the digests of the revisions of a key. It is called
	// for a node with a higher revision than is known.
	Later func(ctx context.Context, key string) (map[uint64]string, error)
	// Once polls once and does not wait.
	Once bool
	// LeaveUnreachable ends the wait when only nodes remain that were unreachable in every
	// poll, or whose pause does not end before the wait. Nodes that become unreachable during
	// the wait may be restarting and are waited for.
	LeaveUnreachable bool
	// MayLeave, if set, is called before LeaveUnreachable ends the wait. If it returns false, the unreachable
	// nodes are waited for.
	MayLeave func(ctx context.Context) bool
	// OnPoll, if set, gets the statuses of each poll.
	OnPoll func([]fleet.RolloutStatus)
	// IsTransient, if set, reports whether the error of a poll may pass by itself, as that of an outage: then the
	// next poll follows.
	IsTransient func(error) bool
}

// Wait waits until every target of the rollout runs its revision or a later one,
// waiting cannot help, or ctx ends, and returns the last statuses. The error is
// that of a poll; one that may pass by itself is an error only where no poll succeeded.
func (w *Waiter) Wait(ctx context.Context, r fleet.Rollout) ([]fleet.RolloutStatus, error) {
	asked, reached := map[revisionOf]bool{}, map[string]bool{}
	r.Later = maps.Clone(r.Later)
	if r.Later == nil {
		r.Later = map[string]map[uint64]string{}
	}
	var last []fleet.RolloutStatus
	for {
		began := time.Now()
		nodes, err := w.Nodes.Nodes(ctx)
		if err == nil {
			err = w.learn(ctx, r, nodes, asked)
		}
		switch {
		case err != nil && ctx.Err() != nil && last != nil:
			return last, nil
		case err != nil && (w.Once || w.IsTransient == nil || !w.IsTransient(err)):
			return last, err
		case err == nil:
			last = r.Statuses(nodes)
			if w.OnPoll != nil {
				w.OnPoll(last)
			}
			if w.isSettled(ctx, last, reached) || w.Once {
				return last, nil
			}
		}
		pause := cmp.Or(w.Pause, defaultPause)
		if err == nil {
			pause = max(pause, min(pausesPerPoll*time.Since(began), longestPause))
		}
		select {
		case <-ctx.Done():
			if last != nil {
				err = nil
			}
			return last, err
		case <-time.After(pause):
		}
	}
}

// isSettled reports whether no status can change without another push. It adds the reachable nodes to
// reached.
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

// revisionOf is a revision of a key.
type revisionOf struct {
	key      string
	revision uint64
}

// learn completes the later revisions of a rollout. It asks once for each that a
// node names: a node does not know of it before the bucket does.
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
		for _, id := range news { // not before it was answered
			asked[id] = true
		}
	}

	return nil
}
