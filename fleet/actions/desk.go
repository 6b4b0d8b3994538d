package actions

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

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/preview"
	"github.com/musterfleet/muster/fleet/request"
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

// Doer does on NATS what is decided here. Its methods may be called by several goroutines.
type Doer interface {
	// Pause writes the pause of a family, and returns what whoever ordered it should know, empty
	// for nothing.
	Pause(ctx context.Context, family string, p model.Pause) (note string, err error)
	// Resume ends the pause of a family, on behalf of somebody. The error wraps model.ErrNotFound
	// where it has none.
	Resume(ctx context.Context, family, author string) (note string, err error)
	// CanAsk returns why no node can be asked for something, nil where they can.
	CanAsk(k Kind) error
	// Run has nodes run what is assigned to them.
	Run(ctx context.Context, nodes []model.Node, request model.RunRequest, answered func(model.EnsureResponse)) (*request.Ensured, error)
	// Preview asks nodes what an assignment would change. Beside an error there is what was answered.
	Preview(ctx context.Context, nodes []model.Node, request model.PreviewRequest, answered func(model.EnsureResponse)) (*preview.Preview, error)
}

const (
	// maxRunning is how many actions go on at the same time, maxKept how many are known that ended.
	maxRunning = 4
	maxKept    = 50
	// maxUnasked is how many nodes a fleet can have of which all are meant without a question.
	maxUnasked = 10
)

// Options are what a Desk is made from.
type Options struct {
	Model Model
	Doer  Doer
	Log   *slog.Logger
	// Now is the clock; nil is time.Now. Patience is how long nodes have to obey what was written
	// about them; 0 is 20 seconds.
	Now      func() time.Time
	Patience time.Duration
}

// Desk takes orders, and carries them out. Make it with New.
type Desk struct {
	o Options
	// places has one for each action that goes on.
	places chan struct{}

	mu sync.Mutex
	// kept are the actions, the oldest first.
	kept    []*entry
	waiting map[chan struct{}]bool
	closed  bool
	running sync.WaitGroup
	// stopped ends what goes on when it is closed.
	stopped chan struct{}
}

// entry is an action that is known. The lock of the desk guards it.
type entry struct {
	Action
	// results are those of all nodes while it goes on.
	results map[string]Result
	done    chan struct{}
}

// New returns a desk, which must be closed.
func New(o Options) *Desk {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Patience = cmp.Or(o.Patience, 20*time.Second)

	return &Desk{o: o, places: make(chan struct{}, maxRunning), waiting: map[chan struct{}]bool{}, stopped: make(chan struct{})}
}

// Close ends what goes on, and waits for it.
func (d *Desk) Close() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.stopped)
	}
	d.mu.Unlock()
	d.running.Wait()
}

// CanAsk returns why no node can be asked for something, nil where they can.
func (d *Desk) CanAsk(k Kind) error { return d.o.Doer.CanAsk(k) }

// Match is whom a target means.
type Match struct {
	fleet.Selection
	// All is that it is all of a fleet that is not small.
	All bool
}

// Match returns whom a target means now. The error is a *Refusal, that of the expression, or wraps
// ErrNobody.
func (d *Desk) Match(t Target) (Match, error) {
	if err := t.check(); err != nil {
		return Match{}, err
	}
	found, err := d.o.Model.Select(t.On)
	if err != nil {
		return Match{}, err
	}
	switch {
	case t.Group != "":
		of := fleet.Target{Group: t.Group}
		found.Nodes = slices.DeleteFunc(found.Nodes, func(n model.Node) bool { return !of.Includes(n.NodeState) })
	case len(t.Nodes) > 0:
		if found.Nodes, err = pick(found.Nodes, t.Nodes); err != nil {
			return Match{}, err
		}
	}
	if len(found.Nodes) == 0 {
		return Match{found, false}, fmt.Errorf("%w: %s", ErrNobody, t)
	}

	return Match{found, len(found.Nodes) == found.Known && found.Known > maxUnasked}, nil
}

// pick returns the nodes of some names. The error is that of one that is not known.
func pick(all []model.Node, names []string) ([]model.Node, error) {
	var out []model.Node
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		at := slices.IndexFunc(all, func(n model.Node) bool { return n.Node == name })
		if at < 0 {
			return nil, fmt.Errorf("%w: no node %s is known", ErrNobody, name)
		}
		out = append(out, all[at])
	}

	return out, nil
}

// Begin begins to carry out an order, and returns the action as it is then. The error is a *Refusal,
// that of the target expression, or wraps ErrBusy, ErrNobody, ErrAll or ErrOthers.
func (d *Desk) Begin(o Order) (Action, error) {
	now := d.o.Now()
	if err := o.check(now); err != nil {
		return Action{}, err
	}
	if o.Kind.Live() {
		if err := d.o.Doer.CanAsk(o.Kind); err != nil {
			return Action{}, &Refusal{err.Error()}
		}
	}
	m, err := d.Match(o.Target)
	if err != nil {
		return Action{}, err
	}
	switch {
	case m.All && !o.All && o.Kind != Preview: // which changes nothing
		return Action{}, fmt.Errorf("%w (%d)", ErrAll, len(m.Nodes))
	case o.Kind == Preview && len(m.Nodes)*len(o.Previewed.Value) > maxSent:
		return Action{}, refuse("what is previewed has %d bytes, which is too much for %d nodes, of which each gets them: select fewer, or use muster fleet preview --bundle", len(o.Previewed.Value), len(m.Nodes))
	case o.Expect >= 0 && o.Expect != len(m.Nodes):
		return Action{}, fmt.Errorf("%w: %d instead of %d", ErrOthers, len(m.Nodes), o.Expect)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return Action{}, ErrBusy
	}
	select {
	case d.places <- struct{}{}:
	default:
		return Action{}, ErrBusy
	}
	e := &entry{Action: Action{Order: o, ID: ksuid.New().String(), Nodes: len(m.Nodes), Begun: now}, results: map[string]Result{}, done: make(chan struct{})}
	if n := len(m.Undecided); n > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("nobody knows whether %d further nodes match: nothing was done there", n))
	}
	for _, n := range m.Nodes {
		e.results[n.Node] = Result{Node: n.Node, State: request.StatePending}
	}
	d.keep(e)
	d.o.Log.Info("an action begins", "action", e.ID, "kind", string(o.Kind), "by", o.By, "target", cut(o.Target.String()), "nodes", e.Nodes, "reason", o.Reason)
	d.running.Go(func() { d.carryOut(e, m.Nodes) })

	return e.snapshot(), nil
}

// keep adds an action, and forgets the oldest ones that have ended.
func (d *Desk) keep(e *entry) {
	d.kept = append(d.kept, e)
	for i := 0; len(d.kept) > maxKept && i < len(d.kept); {
		if d.kept[i].Ended.IsZero() {
			i++
			continue
		}
		d.kept = slices.Delete(d.kept, i, i+1)
	}
}

// carryOut does what was ordered.
func (d *Desk) carryOut(e *entry, nodes []model.Node) {
	defer func() { <-d.places }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.running.Go(func() {
		select {
		case <-d.stopped:
			cancel()
		case <-ctx.Done():
		}
	})
	d.end(e, d.guarded(ctx, e, nodes))
}

// guarded does it. A panic is an error of this action: what it is about is written by nodes.
func (d *Desk) guarded(ctx context.Context, e *entry, nodes []model.Node) (err error) {
	defer func() {
		if why := recover(); why != nil {
			d.o.Log.Error("an action panicked", "action", e.ID, "panic", why, "stack", string(debug.Stack()))
			err = fmt.Errorf("this is a mistake of muster, which its log has: %v", why)
		}
	}()
	switch e.Kind {
	case Preview:
		return d.preview(ctx, e, nodes)
	case Run:
		return d.run(ctx, e, nodes)
	default:
		return d.write(ctx, e, nodes)
	}
}

// end notes that an action has ended, and keeps what is shown of it.
func (d *Desk) end(e *entry, err error) {
	d.change(e, func() {
		if err != nil {
			e.Error = cut(err.Error())
		}
		e.Ended = d.o.Now()
		e.Action = e.snapshot()
		if e.Previewed != nil {
			e.Previewed = &Previewed{Key: e.Previewed.Key, Revision: e.Previewed.Revision, Name: e.Previewed.Name}
		}
		e.results = nil
		close(e.done)
	})
	d.o.Log.Info("an action has ended", "action", e.ID, "by", e.By, "states", fmt.Sprint(e.States), "error", e.Error)
}

// change changes an action, and wakes those who follow.
func (d *Desk) change(e *entry, change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	for w := range d.waiting {
		select {
		case w <- struct{}{}:
		default: // it has not received the one before
		}
	}
}

// note adds what whoever ordered an action should know, once.
func (d *Desk) note(e *entry, text string) {
	const maxNotes = 5
	if text == "" {
		return
	}
	d.change(e, func() {
		if !slices.Contains(e.Notes, text) && len(e.Notes) < maxNotes {
			e.Notes = append(e.Notes, text)
		}
	})
}

// set notes what came of an action on a node.
func (d *Desk) set(e *entry, r Result) {
	d.change(e, func() {
		if len(e.results) > maxDetailed && r.State == request.StateDone {
			r.Runs = nil
		}
		e.results[r.Node] = r
	})
}

// maxDetailed is of how many nodes an action keeps the runs of those on which all went well.
const maxDetailed = 1000

// snapshot returns the action as it is now.
func (e *entry) snapshot() Action {
	out := e.Action
	out.Notes = slices.Clone(e.Notes)
	if e.results != nil {
		out.States, out.Results = sorted(e.results)
		out.More = len(e.results) - len(out.Results)
	}

	return out
}

// Action returns an action by its id.
func (d *Desk) Action(id string) (Action, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.find(id)
	if e == nil {
		return Action{}, false
	}

	return e.snapshot(), true
}

func (d *Desk) find(id string) *entry {
	i := slices.IndexFunc(d.kept, func(e *entry) bool { return e.ID == id })
	if i < 0 {
		return nil
	}

	return d.kept[i]
}

// Wait returns an action once it has ended, or as it is when ctx ends.
func (d *Desk) Wait(ctx context.Context, id string) (Action, bool) {
	d.mu.Lock()
	e := d.find(id)
	d.mu.Unlock()
	if e != nil {
		select {
		case <-e.done:
		case <-ctx.Done():
		}
	}

	return d.Action(id)
}

// Actions returns those that are known, the newest first, without what came of single nodes.
func (d *Desk) Actions() []Action {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Action, 0, len(d.kept))
	for _, e := range slices.Backward(d.kept) {
		a := e.snapshot()
		a.Results, a.More, a.Plans, a.MorePlans = nil, 0, nil, 0
		out = append(out, a)
	}

	return out
}

// Changes returns a channel that receives when an action may have changed, until cancel.
func (d *Desk) Changes() (changed <-chan struct{}, cancel func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := make(chan struct{}, 1)
	d.waiting[w] = true

	return w, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiting, w)
	}
}

// RequestID returns the id of a request to nodes, which names who asked: it is in what they report.
func RequestID(by string) string { return ksuid.New().String() + requestBy + by }

// requestBy is between the two parts of a RequestID.
const requestBy = " by "

// ByOf returns who made a RequestID, empty for another one.
func ByOf(id string) string {
	_, by, _ := strings.Cut(id, requestBy)

	return by
}

// asEnded returns why an action ended that ctx ended.
func asEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the server was stopped meanwhile")
	}

	return err
}
