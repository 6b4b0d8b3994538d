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

// Model is the read model of the fleet.
type Model interface {
	// Select returns the nodes that match a target expression, all nodes for an empty one. An invalid expression is a
	// *targets.Error.
	Select(on string) (fleet.Selection, error)
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
	o        ExecutorOptions
	registry *registry

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	// stopped is closed to end the actions in progress.
	stopped chan struct{}
}

// NewExecutor returns an executor. The caller must call Close.
func NewExecutor(o ExecutorOptions) *Executor {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Patience = cmp.Or(o.Patience, 20*time.Second)

	return &Executor{o: o, registry: newRegistry(), stopped: make(chan struct{})}
}

// Close ends the actions in progress and waits for them.
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

// Match returns the current nodes of a target. The error is a *Refusal or a *targets.Error, or wraps ErrNobody.
func (x *Executor) Match(t Target) (Match, error) { return matchOf(x.o.Model, t) }

// Start starts an action and returns it. The error is a *Refusal or a *targets.Error, or wraps ErrBusy, ErrAway,
// ErrNobody, ErrAll or ErrOthers.
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
	x.o.Log.Info("action started", "action", r.ID, "kind", string(s.Kind), "by", s.By, "target", cut(s.Target.String()), "nodes", r.Nodes, "reason", s.Reason)
	x.running.Go(func() { x.execute(ctx, r, m.Nodes) })

	return started, nil
}

// away returns an ErrAway if NATS is unreachable.
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

// execute runs an action until it ends.
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
	x.o.Log.Info("action ended", "action", ended.ID, "by", ended.By, "states", fmt.Sprint(ended.States), "error", ended.Error)
}

// guarded runs an action. A panic fails only this action, because nodes control the data.
func (x *Executor) guarded(ctx context.Context, e *execution) (err error) {
	defer func() {
		if why := recover(); why != nil {
			x.o.Log.Error("action panicked", "action", e.record.ID, "panic", why, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error, see the log of muster fleet serve: %v", why)
		}
	}()

	return asEnded(ctx, e.do(ctx))
}

// errStopped is the cause of an action that ended with the server.
var errStopped = errors.New("the server was stopped")

// cancelled is the cause of a cancelled action: the name of the user.
type cancelled string

// Error names the user.
func (c cancelled) Error() string { return "cancelled by " + string(c) }

// asEnded returns the cause of ctx if it ended, else err.
func asEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	return err
}

// Cancel cancels an action on behalf of a user and returns it. The action ends soon after. An action that has ended does
// not change. The error wraps ErrUnknown.
func (x *Executor) Cancel(id, by string) (Action, error) {
	by = named(by)
	a, known := x.registry.cancel(id, by)
	if !known {
		return a, ErrUnknown
	}
	x.o.Log.Info("action cancelled", "action", a.ID, "by", by, "ended", !a.Ended.IsZero())

	return a, nil
}

// Action returns an action by its id.
func (x *Executor) Action(id string) (Action, bool) { return x.registry.get(id) }

// Wait returns an action after it ended, or its current state when ctx ends.
func (x *Executor) Wait(ctx context.Context, id string) (Action, bool) {
	return x.registry.wait(ctx, id)
}

// Actions returns the known actions, the newest first, without the results of nodes.
func (x *Executor) Actions() []Action { return x.registry.all() }

// Changes returns a channel that receives after changes of actions, until cancel is called.
func (x *Executor) Changes() (changed <-chan struct{}, cancel func()) { return x.registry.follow() }
