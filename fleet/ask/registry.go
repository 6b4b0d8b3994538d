package ask

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kballard/go-shellquote"
)

const (
	// maxRunning is how many actions go on at the same time, maxOwn how many of them take of one share.
	maxRunning = 4
	maxOwn     = 2
	// maxTarget is how many bytes of a target are in the reason why no other can begin.
	maxTarget = 80
	// maxKept is how many actions are known that ended.
	maxKept = 50
	// maxNotes is how many notes an action has.
	maxNotes = 5
	// maxDetailed is of how many nodes an action keeps the runs of those on which all went well.
	maxDetailed = 1000
)

// registry has the last actions. It may be used by several goroutines.
type registry struct {
	mu sync.Mutex
	// records are the oldest first.
	records   []*record
	followers map[chan struct{}]bool
}

// record is an action that is known. The lock of the registry guards it.
type record struct {
	Action
	// results are those of all nodes while it goes on.
	results map[string]Result
	done    chan struct{}
	// cancel ends what goes on, for a reason.
	cancel context.CancelCauseFunc
}

func newRegistry() *registry { return &registry{followers: map[chan struct{}]bool{}} }

// newRecord returns the record of an action on some nodes, of which nothing is known yet.
func newRecord(a Action, m Match) *record {
	r := &record{Action: a, results: make(map[string]Result, len(m.Nodes)), done: make(chan struct{})}
	if n := len(m.Undecided); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("nobody knows whether %d further nodes match: nothing was done there", n))
	}
	for _, n := range m.Nodes {
		r.results[n.Node] = Result{Node: n.Node, State: StatePending}
	}

	return r
}

// snapshot returns the action as it is now.
func (r *record) snapshot() Action {
	out := r.Action
	out.Notes = slices.Clone(r.Notes)
	if r.results != nil {
		out.States, out.Results = sorted(r.results)
		out.More = len(r.results) - len(out.Results)
	}

	return out
}

// add adds an action, forgets the oldest ones that have ended, and returns it as it is now. The error
// wraps ErrBusy where too many are in progress, and names them.
func (g *registry) add(r *record) (Action, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.busy(r.By, r.Share); err != nil {
		return Action{}, err
	}
	g.records = append(g.records, r)
	for i := 0; len(g.records) > maxKept && i < len(g.records); {
		if g.records[i].Ended.IsZero() {
			i++
			continue
		}
		g.records = slices.Delete(g.records, i, i+1)
	}
	g.wake()

	return r.snapshot(), nil
}

// busy returns why no other action of a name can begin, which takes a share, nil where one can. The lock is held.
func (g *registry) busy(by, share string) error {
	var all, own []*record
	for _, r := range g.records {
		if r.Ended.IsZero() {
			all = append(all, r)
			if r.Share == share {
				own = append(own, r)
			}
		}
	}
	switch {
	case len(own) >= maxOwn:
		return fmt.Errorf("%w: %d of %s are in progress (%s), which is the most for one name: wait for one, or cancel it", ErrBusy, len(own), by, inProgress(own))
	case len(all) >= maxRunning:
		return fmt.Errorf("%w: %d are in progress (%s), which is the most: wait for one, or cancel it", ErrBusy, len(all), inProgress(all))
	default:
		return nil
	}
}

// inProgress names actions: what, of whom, by whom and since when.
func inProgress(all []*record) string {
	out := make([]string, len(all))
	for i, r := range all {
		target := r.Target.String()
		if len(target) > maxTarget {
			target = strings.ToValidUTF8(target[:maxTarget], "") + " …"
		}
		out[i] = fmt.Sprintf("%s of %s by %s since %s", r.Kind, target, r.By, r.Begun.UTC().Format("15:04:05 MST"))
	}

	return strings.Join(out, "; ")
}

// change changes an action, and wakes those who follow.
func (g *registry) change(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	g.wake()
}

// wake wakes those who follow. The lock is held.
func (g *registry) wake() {
	for f := range g.followers {
		select {
		case f <- struct{}{}:
		default: // it has not received the one before
		}
	}
}

// note adds what whoever acts should know, once.
func (g *registry) note(r *record, text string) {
	if text == "" {
		return
	}
	g.change(func() {
		if !slices.Contains(r.Notes, text) && len(r.Notes) < maxNotes {
			r.Notes = append(r.Notes, text)
		}
	})
}

// set notes what came of an action on a node that it is for: others may say that they were asked.
func (g *registry) set(r *record, result Result) {
	g.change(func() {
		if _, asked := r.results[result.Node]; !asked {
			return
		}
		if len(r.results) > maxDetailed && result.State == StateDone {
			result.Runs = nil
		}
		r.results[result.Node] = result
	})
}

// result returns what came of an action on a node so far.
func (g *registry) result(r *record, node string) Result {
	g.mu.Lock()
	defer g.mu.Unlock()

	return r.results[node]
}

// end notes that an action has ended, keeps what is shown of it, and returns that.
func (g *registry) end(r *record, err error, now time.Time) Action {
	g.change(func() {
		if err != nil {
			r.Error = cut(err.Error())
		}
		r.Ended = now
		if r.CancelledBy != "" {
			r.Notes = append(r.Notes, r.onCancel())
		}
		r.Action = r.snapshot()
		if r.Previewed != nil {
			r.Previewed = &Previewed{Key: r.Previewed.Key, Revision: r.Previewed.Revision, Name: r.Previewed.Name}
		}
		r.results = nil
		close(r.done)
	})

	return r.Action // which nothing changes any more
}

// cancel ends an action on behalf of somebody, where it goes on and nobody did before. It returns the action
// as it is then, and whether it is known.
func (g *registry) cancel(id, by string) (a Action, known bool) {
	g.change(func() {
		r := g.find(id)
		if r == nil {
			return
		}
		if r.Ended.IsZero() && r.CancelledBy == "" {
			r.CancelledBy = by
			r.cancel(cancelled(by))
		}
		a, known = r.snapshot(), true
	})

	return a, known
}

// onCancel is what whoever cancels should know.
func (r *record) onCancel() string {
	switch {
	case r.Kind == Preview:
		return "nodes may go on with the preview, which changes nothing"
	case r.Kind == Run && r.Request != "":
		return "nodes that have begun it go on; where it waits, muster fleet run --cancel " + shellquote.Join(r.Request) + " cancels it, with the nodes as a target"
	case r.Kind == Run:
		return "no node was asked"
	default:
		return "what was written stays: see the audit"
	}
}

// find returns the record of an id, nil for none. The lock is held.
func (g *registry) find(id string) *record {
	i := slices.IndexFunc(g.records, func(r *record) bool { return r.ID == id })
	if i < 0 {
		return nil
	}

	return g.records[i]
}

// get returns an action by its id, and whether it is known.
func (g *registry) get(id string) (Action, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.find(id)
	if r == nil {
		return Action{}, false
	}

	return r.snapshot(), true
}

// wait returns an action once it has ended, or as it is when ctx ends, and whether it is known.
func (g *registry) wait(ctx context.Context, id string) (Action, bool) {
	g.mu.Lock()
	r := g.find(id)
	g.mu.Unlock()
	if r != nil {
		select {
		case <-r.done:
		case <-ctx.Done():
		}
	}

	return g.get(id)
}

// all returns the actions, the newest first, without what came of single nodes.
func (g *registry) all() []Action {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]Action, 0, len(g.records))
	for _, r := range slices.Backward(g.records) {
		a := r.snapshot()
		a.Results, a.More, a.Plans, a.MorePlans = nil, 0, nil, 0
		out = append(out, a)
	}

	return out
}

// follow returns a channel that receives when an action may have changed, until cancel.
func (g *registry) follow() (changed <-chan struct{}, cancel func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := make(chan struct{}, 1)
	g.followers[f] = true

	return f, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.followers, f)
	}
}
