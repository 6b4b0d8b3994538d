// Package ask sends requests to many nodes, in batches if asked, and collects their answers. It also
// runs the actions of operators over HTTP: pause, resume, run and preview. It does not import NATS.
package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kballard/go-shellquote"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// Model is the read model of the fleet.
type Model interface {
	// Select returns the nodes that match a target expression, all nodes for an empty one. An invalid expression is a
	// *targets.Error.
	Select(on string) (targets.Selection, error)
	// State returns the state of a node and reports whether it is known.
	State(node string) (model.Node, bool)
	// Changes returns a channel that receives after changes, until cancel is called.
	Changes() (changed <-chan struct{}, cancel func())
}

// Backend writes pauses and sends requests over NATS. Several goroutines may call its methods.
type Backend interface {
	// Pause writes the pause of a family. It may return a note for the user.
	Pause(ctx context.Context, family string, p model.Pause) (note string, err error)
	// Resume removes the pause of a family on behalf of author. The error wraps model.ErrNotFound if there is no pause.
	Resume(ctx context.Context, family, author string) (note string, err error)
	// CheckRequests returns the reason why requests of a kind reach no node, nil if they do.
	CheckRequests(k Kind) error
	// Run requests runs of assigned manifests on behalf of a sender.
	Run(ctx context.Context, from model.Sender, nodes []model.Node, request model.RunRequest, answered func(model.EnsureResponse)) (*Ensured, error)
	// Preview requests the plans for an assignment. With an error it returns the answers so far.
	Preview(ctx context.Context, nodes []model.Node, request model.PreviewRequest, answered func(model.EnsureResponse)) (*PreviewResult, error)
}

// ExecutorOptions configures an Executor.
type ExecutorOptions struct {
	Model   Model
	Backend Backend
	Log     *slog.Logger
	// Away, if set, returns the reason why NATS is unreachable, nil if it is reachable.
	Away func() error
	// Now is the clock; nil is time.Now. Patience limits the wait for nodes to confirm a change; 0 is 20 seconds.
	Now      func() time.Time
	Patience time.Duration
}

// Executor starts actions and remembers the last ones. NewExecutor makes it.
type Executor struct {
	ExecutorOptions
	// ctx ends the actions in progress.
	ctx     context.Context
	stop    context.CancelCauseFunc
	running sync.WaitGroup

	mu sync.Mutex
	// records are ordered by start, the oldest first.
	records   []*record
	followers map[chan struct{}]bool
}

// NewExecutor returns an executor. The caller must call Close.
func NewExecutor(o ExecutorOptions) *Executor {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Patience = cmp.Or(o.Patience, 20*time.Second)
	x := &Executor{ExecutorOptions: o, followers: map[chan struct{}]bool{}}
	x.ctx, x.stop = context.WithCancelCause(context.Background())

	return x
}

// Close ends the actions in progress and waits for them.
func (x *Executor) Close() {
	x.mu.Lock()
	x.stop(errStopped)
	x.mu.Unlock()
	x.running.Wait()
}

// CheckRequests returns why requests of a kind reach no node, nil where they do.
func (x *Executor) CheckRequests(k Kind) error { return x.Backend.CheckRequests(k) }

// Match returns the current nodes of a target. The error is a *Refusal or a *targets.Error, or wraps ErrNobody.
func (x *Executor) Match(t Target) (Match, error) { return matchOf(x.Model, t) }

// Start starts an action and returns it. The error is a *Refusal or a *targets.Error, or wraps ErrBusy, ErrAway,
// ErrNobody, ErrAll or ErrOthers.
func (x *Executor) Start(s Spec) (Action, error) {
	now := x.Now()
	if err := s.check(now); err != nil {
		return Action{}, err
	}
	if s.Kind.Live() {
		if err := x.CheckRequests(s.Kind); err != nil {
			return Action{}, &Refusal{err.Error()}
		}
	}
	m, err := x.Match(s.Target)
	if err == nil {
		err = s.confirmed(m)
	}
	if err == nil {
		err = x.away(s.Kind)
	}
	if err != nil {
		return Action{}, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx.Err() != nil {
		return Action{}, fmt.Errorf("%w: the server stops", ErrBusy)
	}
	r := x.newRecord(Action{Spec: s, ID: ksuid.New().String(), Begun: now}, m)
	if err := x.add(r); err != nil {
		return Action{}, err
	}
	ctx, cancel := context.WithCancelCause(x.ctx)
	r.cancel = cancel
	x.Log.Info("action started", "action", r.ID, "kind", string(s.Kind), "by", s.By, "target", cut(s.Target.String()), "nodes", r.Nodes, "reason", s.Reason)
	x.running.Go(func() { r.execute(ctx) })

	return r.snapshot(), nil
}

// away returns an ErrAway if NATS is unreachable.
func (x *Executor) away(k Kind) error {
	if x.Away == nil {
		return nil
	}
	err := x.Away()
	switch {
	case err == nil:
		return nil
	case k.Live():
		return fmt.Errorf("%w (%w): no node was asked", ErrAway, err)
	default:
		return fmt.Errorf("%w (%w): not written", ErrAway, err)
	}
}

// execute runs an action until it ends.
func (r *record) execute(ctx context.Context) {
	defer r.cancel(nil)
	err := r.guarded(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	ended := r.end(err)
	r.x.Log.Info("action ended", "action", ended.ID, "by", ended.By, "states", fmt.Sprint(ended.States), "error", ended.Error)
}

// guarded runs an action. A panic fails only this action, because nodes control the data.
func (r *record) guarded(ctx context.Context) (err error) {
	defer func() {
		if why := recover(); why != nil {
			r.x.Log.Error("action panicked", "action", r.ID, "panic", why, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error, see the log of muster fleet serve: %v", why)
		}
	}()
	switch r.Kind {
	case Preview:
		return r.preview(ctx)
	case Run:
		return r.run(ctx)
	default:
		return r.write(ctx)
	}
}

// errStopped is the cause of an action that ended with the server.
var errStopped = errors.New("the server was stopped")

// cancelled is the cause of a cancelled action: the name of the user.
type cancelled string

// Error names the user.
func (c cancelled) Error() string { return "cancelled by " + string(c) }

// Cancel cancels an action on behalf of a user and returns it. The action ends soon after. An action that has ended or is
// cancelled does not change. The error wraps ErrUnknown.
func (x *Executor) Cancel(id, by string) (Action, error) {
	by = named(by)
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.find(id)
	if r == nil {
		return Action{}, ErrUnknown
	}
	if r.Ended.IsZero() && r.CancelledBy == "" {
		r.CancelledBy = by
		r.cancel(cancelled(by))
		x.wake()
	}
	x.Log.Info("action cancelled", "action", r.ID, "by", by, "ended", !r.Ended.IsZero())

	return r.snapshot(), nil
}

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

// record runs an action of an Executor. The mutex of the Executor guards it.
type record struct {
	Action
	x *Executor
	// nodes are the target nodes at the start.
	nodes []model.Node
	// results has the results of all nodes while the action is in progress.
	results map[string]Result
	done    chan struct{}
	// cancel ends the action with a cause.
	cancel context.CancelCauseFunc
}

// newRecord returns the record of an action without results.
func (x *Executor) newRecord(a Action, m Match) *record {
	r := &record{Action: a, x: x, nodes: m.Nodes, results: make(map[string]Result, len(m.Nodes)), done: make(chan struct{})}
	r.Nodes = len(m.Nodes)
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
// progress. The caller holds mu.
func (x *Executor) add(r *record) error {
	if err := x.busy(r.By, r.Share); err != nil {
		return err
	}
	x.records = append(x.records, r)
	surplus := len(x.records) - maxKept
	x.records = slices.DeleteFunc(x.records, func(r *record) bool {
		isOld := surplus > 0 && !r.Ended.IsZero()
		if isOld {
			surplus--
		}
		return isOld
	})
	x.wake()

	return nil
}

// busy returns an ErrBusy if no action of a user can start. The caller holds mu.
func (x *Executor) busy(by, share string) error {
	var all, own []*record
	for _, r := range x.records {
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

// edit changes the action and wakes the followers.
func (r *record) edit(change func()) {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	change()
	r.x.wake()
}

// wake wakes the followers. The caller holds mu.
func (x *Executor) wake() {
	for f := range x.followers {
		select {
		case f <- struct{}{}:
		default: // the previous signal is still pending
		}
	}
}

// note adds a note for the user, unless the action has it.
func (r *record) note(text string) {
	if text == "" {
		return
	}
	r.edit(func() {
		if !slices.Contains(r.Notes, text) && len(r.Notes) < maxNotes {
			r.Notes = append(r.Notes, text)
		}
	})
}

// set records the result of a node. It ignores nodes that are no targets, because any node may claim to be one.
func (r *record) set(result Result) {
	r.edit(func() {
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
func (r *record) result(node string) Result {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()

	return r.results[node]
}

// end ends an action, drops the data that is not shown, and returns it.
func (r *record) end(err error) Action {
	r.edit(func() {
		if err != nil {
			r.Error = cut(err.Error())
		}
		r.Ended = r.x.Now()
		if r.CancelledBy != "" {
			r.Notes = append(r.Notes, r.onCancel())
		}
		r.Action = r.snapshot()
		if r.Previewed != nil {
			r.Previewed = &Previewed{Key: r.Previewed.Key, Revision: r.Previewed.Revision, Name: r.Previewed.Name}
		}
		r.results, r.nodes = nil, nil
		close(r.done)
	})

	return r.Action // no longer changes
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
func (x *Executor) find(id string) *record {
	i := slices.IndexFunc(x.records, func(r *record) bool { return r.ID == id })
	if i < 0 {
		return nil
	}

	return x.records[i]
}

// Action returns an action by its id and reports whether it is known.
func (x *Executor) Action(id string) (Action, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.find(id)
	if r == nil {
		return Action{}, false
	}

	return r.snapshot(), true
}

// Wait returns an action after it ended, or its current state when ctx ends, and reports whether it is known.
func (x *Executor) Wait(ctx context.Context, id string) (Action, bool) {
	x.mu.Lock()
	r := x.find(id)
	x.mu.Unlock()
	if r != nil {
		select {
		case <-r.done:
		case <-ctx.Done():
		}
	}

	return x.Action(id)
}

// Actions returns the known actions, the newest first, without the results of nodes.
func (x *Executor) Actions() []Action {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make([]Action, 0, len(x.records))
	for _, r := range slices.Backward(x.records) {
		a := r.snapshot()
		a.Results, a.More, a.Plans, a.MorePlans = nil, 0, nil, 0
		out = append(out, a)
	}

	return out
}

// Changes returns a channel that receives after changes of actions, until cancel is called.
func (x *Executor) Changes() (changed <-chan struct{}, cancel func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := make(chan struct{}, 1)
	x.followers[f] = true

	return f, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.followers, f)
	}
}

// Refusal is the error of an invalid action. Retrying does not help.
type Refusal struct{ Why string }

// Error returns the reason and the remedy.
func (r *Refusal) Error() string { return r.Why }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// Errors of actions, besides Refusal and the errors of target expressions.
var (
	// ErrOff means that the server does not allow actions.
	ErrOff = errors.New("actions are off: start muster fleet serve with --actions, and with --tokens or OpenID Connect")
	// ErrBusy means that too many actions are in progress.
	ErrBusy = errors.New("too many actions at once")
	// ErrAway means that NATS is unreachable.
	ErrAway = errors.New("NATS cannot be reached")
	// ErrUnknown is the error of an unknown action id.
	ErrUnknown = errors.New("unknown action: this server restarted, or another instance ran it")
	// ErrNobody means that the target has no nodes.
	ErrNobody = errors.New("no known node matches")
	// ErrAll means that an action on all nodes of a fleet that is not small lacks confirmation.
	ErrAll = errors.New("this is for all nodes: confirm it")
	// ErrOthers means that the target has other nodes than the user confirmed.
	ErrOthers = errors.New("other nodes match now than when they were shown")
)
