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
	// maxRunning is the maximum number of actions in progress, and maxOwn the maximum of one user.
	maxRunning = 4
	maxOwn     = 2
	// maxTarget is the maximum length of a target in an ErrBusy, in bytes.
	maxTarget = 80
	// maxKept is the maximum number of actions that are remembered.
	maxKept = 50
	// maxNotes is the maximum number of notes of an action.
	maxNotes = 5
	// maxDetailed is the number of nodes above which an action drops the runs of successful nodes.
	maxDetailed = 1000
)

// registry holds the last actions. Several goroutines may use it.
type registry struct {
	mu sync.Mutex
	// records are ordered by start, the oldest first.
	records   []*record
	followers map[chan struct{}]bool
}

// record is an action in the registry. The mutex of the registry guards it.
type record struct {
	Action
	// results has the results of all nodes while the action is in progress.
	results map[string]Result
	done    chan struct{}
	// cancel ends the action with a cause.
	cancel context.CancelCauseFunc
}

func newRegistry() *registry { return &registry{followers: map[chan struct{}]bool{}} }

// newRecord returns the record of an action without results.
func newRecord(a Action, m Match) *record {
	r := &record{Action: a, results: make(map[string]Result, len(m.Nodes)), done: make(chan struct{})}
	if n := len(m.Undecided); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d more nodes may match and were skipped", n))
	}
	for _, n := range m.Nodes {
		r.results[n.Node] = Result{Node: n.Node, State: StatePending}
	}

	return r
}

// snapshot returns the current action.
func (r *record) snapshot() Action {
	out := r.Action
	out.Notes = slices.Clone(r.Notes)
	if r.results != nil {
		out.States, out.Results = sorted(r.results)
		out.More = len(r.results) - len(out.Results)
	}

	return out
}

// add adds an action and removes the oldest ones that have ended. The error wraps ErrBusy and lists the actions in
// progress.
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

// busy returns an ErrBusy if no action of a user can start. The caller holds mu.
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
		return fmt.Errorf("%w: %d of %s are in progress (%s), the maximum for one user: wait for one, or cancel it", ErrBusy, len(own), by, inProgress(own))
	case len(all) >= maxRunning:
		return fmt.Errorf("%w: %d are in progress (%s), the maximum: wait for one, or cancel it", ErrBusy, len(all), inProgress(all))
	default:
		return nil
	}
}

// inProgress describes actions with kind, target, user and start.
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

// change changes an action and wakes the followers.
func (g *registry) change(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	g.wake()
}

// wake wakes the followers. The caller holds mu.
func (g *registry) wake() {
	for f := range g.followers {
		select {
		case f <- struct{}{}:
		default: // the previous signal is still pending
		}
	}
}

// note adds a note for the user, unless the action has it.
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

// set records the result of a node. It ignores nodes that are no targets, because any node may claim to be one.
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

// result returns the result of a node so far.
func (g *registry) result(r *record, node string) Result {
	g.mu.Lock()
	defer g.mu.Unlock()

	return r.results[node]
}

// end ends an action, drops the data that is not shown, and returns it.
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

	return r.Action // no longer changes
}

// cancel cancels an action on behalf of a user, unless it has ended or is cancelled. It returns the action and reports
// whether it is known.
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

// onCancel returns the note for a cancelled action.
func (r *record) onCancel() string {
	switch {
	case r.Kind == Preview:
		return "nodes may finish the preview, which changes nothing"
	case r.Kind == Run && r.Request != "":
		return "nodes that started the run continue it; muster fleet run --cancel " + shellquote.Join(r.Request) + " cancels it, with the other nodes as targets"
	case r.Kind == Run:
		return "no node was asked"
	default:
		return "written changes stay: see the audit"
	}
}

// find returns the record of an id, nil for none. The caller holds mu.
func (g *registry) find(id string) *record {
	i := slices.IndexFunc(g.records, func(r *record) bool { return r.ID == id })
	if i < 0 {
		return nil
	}

	return g.records[i]
}

// get returns an action by its id and reports whether it is known.
func (g *registry) get(id string) (Action, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.find(id)
	if r == nil {
		return Action{}, false
	}

	return r.snapshot(), true
}

// wait returns an action after it ended or when ctx ends, and reports whether it is known.
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

// all returns the actions, the newest first, without the results of nodes.
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

// follow returns a channel that receives after changes, until cancel is called.
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
