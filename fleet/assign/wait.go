package assign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	// higher revision. Reach sets it.
	Later func(ctx context.Context, key string) (map[uint64]string, error)
	// Once polls once and does not wait. Reach sets it.
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
	// Check, if set, is called after each poll. Its error ends the wait like an error of a poll. Reach sets it.
	Check func(ctx context.Context) error
	// IsTransient, if set, reports whether the error of a poll is temporary, as in an outage. The wait then
	// continues.
	IsTransient func(error) bool
	// OnOutage, if set, receives each temporary error before the wait continues.
	OnOutage func(error)
}

// retries reports whether the wait continues after an error.
func (w *Waiter) retries(err error) bool {
	is := !w.Once && w.IsTransient != nil && w.IsTransient(err)
	if is && w.OnOutage != nil {
		w.OnOutage(err)
	}

	return is
}

// Poll calls poll until it reports true or fails, or ctx ends, and returns the last error. It continues after an error for
// which isTransient, if set, returns true. The pause grows with the duration of the last successful call.
func Poll(ctx context.Context, pause time.Duration, isTransient func(error) bool, poll func() (done bool, err error)) error {
	for {
		began := time.Now()
		done, err := poll()
		if done || err != nil && (ctx.Err() != nil || isTransient == nil || !isTransient(err)) {
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
// possible, or ctx ends, and returns the last statuses. It returns the error of a poll. When
// ctx ends after a successful poll, it returns no error except a *ReplacedError.
func (w *Waiter) Wait(ctx context.Context, r fleet.Rollout) ([]fleet.RolloutStatus, error) {
	asked, reached := map[revisionOf]bool{}, map[string]bool{}
	r.Later = maps.Clone(r.Later)
	if r.Later == nil {
		r.Later = map[string]map[uint64]string{}
	}
	var last []fleet.RolloutStatus
	err := Poll(ctx, cmp.Or(w.Pause, defaultPause), w.retries, func() (bool, error) {
		nodes, err := w.Nodes.Nodes(ctx)
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
		if w.Check != nil { // after the nodes, which may run the revision that replaced this one
			if err := w.Check(ctx); err != nil {
				return false, err
			}
		}

		return w.isSettled(ctx, last, reached) || w.Once, nil
	})
	if _, isReplaced := errors.AsType[*ReplacedError](err); !isReplaced && ctx.Err() != nil && last != nil {
		err = nil
	}

	return last, err
}

// Reached is the result of Reach.
type Reached struct {
	Rollout  fleet.Rollout
	Statuses []fleet.RolloutStatus
	// TimedOut is set if the wait took the whole time, which may be 0.
	TimedOut bool
	// Replaced is set if another revision replaced a revision of the goal.
	Replaced *ReplacedError
}

// Reach waits like Wait until nodes run the assignments of a goal, for at most timeout; 0 polls once. It explains why nodes
// skip an assignment.
func (w *Waiter) Reach(ctx context.Context, b Bucket, g Goal, timeout time.Duration) (out Reached, err error) {
	limit := ctx
	if w.Once = timeout <= 0; !w.Once {
		var cancel func()
		limit, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err = Retry(limit, w.retries, func() (err error) {
		out.Rollout, err = g.rollout(ctx, b)
		return err
	})
	if err != nil {
		return out, err
	}
	w.Later = func(ctx context.Context, key string) (map[uint64]string, error) { return Digests(ctx, b, key) }
	w.Check = func(ctx context.Context) error { return g.replaced(ctx, b) }
	out.Statuses, err = w.Wait(limit, out.Rollout)
	out.TimedOut = w.Once || limit.Err() != nil
	if err == nil && ctx.Err() == nil && slices.ContainsFunc(out.Statuses, isLate) { // the revision may have been replaced since the last poll
		err = Retry(limit, w.retries, func() error { return g.replaced(ctx, b) })
	}
	if errors.As(err, &out.Replaced) {
		err = nil
	}
	if err == nil {
		err = Retry(limit, w.retries, func() error { return fleet.ExplainSkipped(ctx, b.Get, out.Statuses) })
	}
	// If NATS does not answer at the end, the statuses are known, but perhaps not their reasons.
	if len(out.Statuses) > 0 && (ctx.Err() != nil || w.IsTransient != nil && err != nil && w.IsTransient(err)) {
		err = nil
	}

	return out, err
}

// isLate reports whether a node does not run the desired revision.
func isLate(s fleet.RolloutStatus) bool {
	return s.Status != fleet.StatusUpToDate || s.Current != s.Desired
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

// Goal selects the assignments of a name.
type Goal struct {
	Name string
	// Keys selects some assignments. If it is empty, it selects all.
	Keys []string
	// Nodes selects nodes by name. If it is nil, it selects all.
	Nodes map[string]bool
	// Revisions are the revisions of keys, unless they are the newest.
	Revisions map[string]uint64
	// InForce ends the wait with an error when a later revision replaces one of these revisions.
	InForce bool
}

// rollout returns the selected assignments, and others of the same name that may override them on a node.
func (g Goal) rollout(ctx context.Context, b Bucket) (fleet.Rollout, error) {
	all, err := b.List(ctx)
	if err != nil {
		return fleet.Rollout{}, err
	}
	entries := slices.DeleteFunc(slices.Clone(all), func(e model.Entry) bool { return e.Name != g.Name })
	at := func(key string) int {
		return slices.IndexFunc(entries, func(e model.Entry) bool { return e.Key == key })
	}
	for key, revision := range g.Revisions {
		i := at(key)
		if i < 0 {
			entries = append(entries, model.Entry{Key: key})
			i = len(entries) - 1
		}
		if entries[i].Revision == revision {
			continue
		}
		digests, err := Digests(ctx, b, key)
		if err != nil {
			return fleet.Rollout{}, err
		}
		entries[i].Revision, entries[i].Digest, entries[i].Time = revision, digests[revision], time.Time{}
	}
	for _, key := range g.Keys {
		if at(key) < 0 {
			return fleet.Rollout{}, NotAssigned(key, all)
		}
	}
	if len(entries) == 0 {
		return fleet.Rollout{}, NotAssigned(g.Name, all)
	}

	return fleet.Rollout{Entries: entries, Keys: g.Keys, Nodes: g.Nodes}, nil
}

// ReplacedError means that another revision replaced a revision.
type ReplacedError struct {
	Revision uint64
	By       model.Entry
}

// Error names both revisions and the author of the later one.
func (r *ReplacedError) Error() string {
	what := "was replaced by revision"
	if r.By.Deleted {
		what = "was removed with revision"
	}
	text := fmt.Sprintf("%s revision %d %s %d", r.By.Key, r.Revision, what, r.By.Revision)
	if r.By.By != "" {
		text += " of " + strings.Join(strings.Fields(r.By.By), " ")
	}

	return text
}

// replaced returns a *ReplacedError if a revision of a goal in force was replaced.
func (g Goal) replaced(ctx context.Context, b Bucket) error {
	if !g.InForce {
		return nil
	}
	for _, key := range g.Keys {
		e, err := b.Get(ctx, key)
		switch {
		case err == nil && e.Revision == g.Revisions[key]:
			continue
		case err != nil && !errors.Is(err, model.ErrNotFound):
			return err
		}
		all, err := b.History(ctx, key)
		if err != nil && !errors.Is(err, model.ErrNotFound) {
			return err
		}
		if by, is := Replacement(all, g.Revisions[key]); is {
			return &ReplacedError{g.Revisions[key], by}
		}
	}

	return nil
}
