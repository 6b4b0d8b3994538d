package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/model"
)

// Model is the fleet as it is known.
type Model interface {
	// Select returns the nodes that a target expression selects, all for an empty one. The error is
	// that of the expression: a *target.Error, which names the column and the remedy.
	Select(on string) (fleet.Selection, error)
	// State returns the state of a node, and whether it is known.
	State(node string) (model.Node, bool)
	// Changes returns a channel that receives when something may have changed, until cancel.
	Changes() (changed <-chan struct{}, cancel func())
}

// Backend does on NATS what is decided here. Its methods may be called by several goroutines.
type Backend interface {
	// Pause writes the pause of a family, and returns what whoever acts should know, empty for
	// nothing.
	Pause(ctx context.Context, family string, p model.Pause) (note string, err error)
	// Resume ends the pause of a family, on behalf of somebody. The error wraps model.ErrNotFound
	// where it has none.
	Resume(ctx context.Context, family, author string) (note string, err error)
	// CheckRequests returns why requests of a kind reach no node, nil where they do.
	CheckRequests(k Kind) error
	// Run has nodes run what is assigned to them, in the name of a sender.
	Run(ctx context.Context, from model.Sender, nodes []model.Node, request model.RunRequest, answered func(model.EnsureResponse)) (*Ensured, error)
	// Preview asks nodes what an assignment would change. Beside an error there is what was answered.
	Preview(ctx context.Context, nodes []model.Node, request model.PreviewRequest, answered func(model.EnsureResponse)) (*PreviewResult, error)
}

// ExecutorOptions configures an Executor.
type ExecutorOptions struct {
	Model   Model
	Backend Backend
	Log     *slog.Logger
	// Away returns why NATS cannot be reached now, nil where it can; nil is that nobody knows.
	Away func() error
	// Now is the clock; nil is time.Now. Patience is how long nodes have to confirm what was written
	// about them; 0 is 20 seconds.
	Now      func() time.Time
	Patience time.Duration
}

// Executor starts actions, and knows the last of them. Make it with New.
type Executor struct {
	o        ExecutorOptions
	registry *registry

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	// stopped ends what goes on when it is closed.
	stopped chan struct{}
}

// NewExecutor returns an executor. The caller must close it.
func NewExecutor(o ExecutorOptions) *Executor {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Patience = cmp.Or(o.Patience, 20*time.Second)

	return &Executor{o: o, registry: newRegistry(), stopped: make(chan struct{})}
}

// Close ends what goes on, and waits for it.
func (x *Executor) Close() {
	x.mu.Lock()
	if !x.closed {
		x.closed = true
		close(x.stopped)
	}
	x.mu.Unlock()
	x.running.Wait()
}

// CheckRequests returns why requests of a kind reach no node, nil where they do.
func (x *Executor) CheckRequests(k Kind) error { return x.o.Backend.CheckRequests(k) }

// Match returns whom a target means now. The error is a *Refusal, that of the expression, or wraps
// ErrNobody.
func (x *Executor) Match(t Target) (Match, error) { return matchOf(x.o.Model, t) }

// Start starts an action, and returns it as it is then. The error is a *Refusal, that of the target
// expression, or wraps ErrBusy, ErrAway, ErrNobody, ErrAll or ErrOthers.
func (x *Executor) Start(s Spec) (Action, error) {
	now := x.o.Now()
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
	if x.closed {
		return Action{}, fmt.Errorf("%w: the server stops", ErrBusy)
	}
	r := newRecord(Action{Spec: s, ID: ksuid.New().String(), Nodes: len(m.Nodes), Begun: now}, m)
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	started, err := x.registry.add(r)
	if err != nil {
		cancel(nil)
		return Action{}, err
	}
	x.o.Log.Info("an action begins", "action", r.ID, "kind", string(s.Kind), "by", s.By, "target", cut(s.Target.String()), "nodes", r.Nodes, "reason", s.Reason)
	x.running.Go(func() { x.execute(ctx, r, m.Nodes) })

	return started, nil
}

// away returns why no action of a kind can begin now, an ErrAway; nil where one can.
func (x *Executor) away(k Kind) error {
	if x.o.Away == nil {
		return nil
	}
	err := x.o.Away()
	switch {
	case err == nil:
		return nil
	case k.Live():
		return fmt.Errorf("%w (%w): no node was asked", ErrAway, err)
	default:
		return fmt.Errorf("%w (%w): nothing was written", ErrAway, err)
	}
}

// execute does what an action is, to its end.
func (x *Executor) execute(ctx context.Context, r *record, nodes []model.Node) {
	defer r.cancel(nil)
	x.running.Go(func() {
		select {
		case <-x.stopped:
			r.cancel(errStopped)
		case <-ctx.Done():
		}
	})
	err := x.guarded(ctx, &execution{ExecutorOptions: x.o, registry: x.registry, record: r, nodes: nodes})
	ended := x.registry.end(r, err, x.o.Now())
	x.o.Log.Info("an action has ended", "action", ended.ID, "by", ended.By, "states", fmt.Sprint(ended.States), "error", ended.Error)
}

// guarded does it. A panic is an error of this action: what it is about is written by nodes.
func (x *Executor) guarded(ctx context.Context, e *execution) (err error) {
	defer func() {
		if why := recover(); why != nil {
			x.o.Log.Error("an action panicked", "action", e.record.ID, "panic", why, "stack", string(debug.Stack()))
			err = fmt.Errorf("this is a mistake of muster, which its log has: %v", why)
		}
	}()

	return asEnded(ctx, e.do(ctx))
}

// errStopped is why an action ended with the server.
var errStopped = errors.New("the server was stopped meanwhile")

// cancelled is why an action ended that somebody cancelled, by their name.
type cancelled string

// Error says who.
func (c cancelled) Error() string { return "cancelled by " + string(c) }

// asEnded returns why an action ended that ctx ended.
func asEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	return err
}

// Cancel ends an action that goes on, on behalf of somebody, and returns it as it is then: it ends soon
// after. One that has ended stays as it is. The error wraps ErrUnknown.
func (x *Executor) Cancel(id, by string) (Action, error) {
	by = named(by)
	a, known := x.registry.cancel(id, by)
	if !known {
		return a, ErrUnknown
	}
	x.o.Log.Info("an action is cancelled", "action", a.ID, "by", by, "ended", !a.Ended.IsZero())

	return a, nil
}

// Action returns an action by its id.
func (x *Executor) Action(id string) (Action, bool) { return x.registry.get(id) }

// Wait returns an action once it has ended, or as it is when ctx ends.
func (x *Executor) Wait(ctx context.Context, id string) (Action, bool) {
	return x.registry.wait(ctx, id)
}

// Actions returns those that are known, the newest first, without what came of single nodes.
func (x *Executor) Actions() []Action { return x.registry.all() }

// Changes returns a channel that receives when an action may have changed, until cancel.
func (x *Executor) Changes() (changed <-chan struct{}, cancel func()) { return x.registry.follow() }
