package ask

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Change is a change that is written about nodes.
type Change interface {
	// Status returns the state of the change on a node. known is set if the node has a state, settled if a rejection in
	// it belongs to this change and not to the value before.
	Status(n model.Node, known, settled bool) PauseStatus
	// Rejection returns the reason why a node rejects the value under the key, empty if it does not.
	Rejection(n model.Node) string
}

// Confirmation is the state of a change on a node.
type Confirmation struct {
	Node  string `json:"node"`
	State State  `json:"state"`
	Text  string `json:"text"`

	unsigned bool
	change   Change
	// before is the rejection before the change.
	before string
}

// NewConfirmation returns the pending confirmation of a change by a node. n is the state before the change.
func NewConfirmation(change Change, n model.Node) Confirmation {
	pending := PausePending()

	return Confirmation{Node: n.Node, State: pending.State, Text: pending.Text, change: change, before: change.Rejection(n)}
}

// update updates the confirmation from the state of the node, unless it is final, and reports whether it changed.
func (c *Confirmation) update(n model.Node, known, settled bool) (changed bool) {
	if c.State == StateDone || c.State == StateFailed {
		return false
	}
	now := c.change.Status(n, known, settled || c.change.Rejection(n) != c.before)
	changed = now.State != c.State || now.Text != c.Text
	c.State, c.Text, c.unsigned = now.State, now.Text, now.Unsigned

	return changed
}

// Waiter waits until nodes confirm changes.
type Waiter struct {
	// States reads the states of the nodes and returns a lookup by name.
	States func(ctx context.Context) (func(node string) (model.Node, bool), error)
	// Pause waits before the next read; took is the duration of the last one.
	Pause func(ctx context.Context, took time.Duration)
	// OnChange, if set, is called for each confirmation that changed.
	OnChange func(*Confirmation)
	// OnPending, if set, is called with the number of pending confirmations before each pause.
	OnPending func(count int)
}

// Wait waits until no confirmation is pending or ctx ends, which is no error.
func (w Waiter) Wait(ctx context.Context, all []*Confirmation) error {
	for began := time.Now(); ; {
		read := time.Now()
		state, err := w.States(ctx)
		if err != nil {
			if ctx.Err() == nil {
				return err
			}
			return nil
		}
		settled, pending := time.Since(began) >= PauseSettling, 0
		for _, c := range all {
			n, known := state(c.Node)
			if c.update(n, known, settled) && w.OnChange != nil {
				w.OnChange(c)
			}
			if c.State == StatePending {
				pending++
			}
		}
		if pending == 0 || ctx.Err() != nil {
			return nil
		}
		if w.OnPending != nil {
			w.OnPending(pending)
		}
		if w.Pause(ctx, time.Since(read)); ctx.Err() != nil {
			return nil
		}
	}
}

const (
	// writers is the maximum number of concurrent writes, and writing the time limit for all of them.
	writers = 8
	writing = 2 * time.Minute
)

// write pauses or resumes nodes and waits until they confirm.
func (e *execution) write(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, writing)
	defer cancel()
	failed := e.writeAll(limit)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed != nil && e.record.Target.Group != "" {
		return failed
	}
	e.awaitNodes(ctx)

	return nil
}

// writeAll writes the change of every target. A failure is the result of its node, or the returned error for a group.
func (e *execution) writeAll(ctx context.Context) error {
	var all errgroup.Group
	all.SetLimit(writers)
	for _, t := range e.record.targets(e.nodes) {
		if errors.Is(ctx.Err(), context.Canceled) {
			break // the other targets do not change
		}
		all.Go(func() error { return e.writeOne(ctx, t) })
	}

	return all.Wait()
}

// writeOne writes the change of one target.
func (e *execution) writeOne(ctx context.Context, t fleet.Target) error {
	var note string
	var err error
	if r := e.record; r.Kind == Pause {
		note, err = e.Backend.Pause(ctx, t.String(), r.pause(r.Begun))
	} else {
		note, err = e.Backend.Resume(ctx, t.String(), r.Author())
	}
	e.note(note)
	switch {
	case err == nil:
		return nil
	case t.Node == "", errors.Is(ctx.Err(), context.Canceled):
	case errors.Is(err, model.ErrNotFound):
		e.set(e.notPaused(t.Node))
	default:
		e.set(Result{Node: t.Node, State: StateFailed, Text: cut(err.Error())})
	}

	return err
}

// notPaused returns the result of resuming a node that has no pause under its own key.
func (e *execution) notPaused(name string) Result {
	r := Result{Node: name, State: StateDone, Text: "was not paused"}
	if n, known := e.Model.State(name); known && n.Paused != nil && n.Paused.From != model.Key(model.NodeFamily(name), model.ControlPause) {
		r.State, r.Text = StateFailed, "is paused by "+cut(n.Paused.From)+", not by its own pause"
	}

	return r
}

// awaitNodes waits until every node confirms or rejects the change, but not longer than Patience.
func (e *execution) awaitNodes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Patience)
	defer cancel()
	changed, end := e.Model.Changes()
	defer end()
	again := time.NewTicker(PauseSettling)
	defer again.Stop()
	var all []*Confirmation
	for _, n := range e.nodes {
		if s := e.registry.result(e.record, n.Node).State; s != StateDone && s != StateFailed {
			c := NewConfirmation(e.record.change(n.Node), n)
			all = append(all, &c)
			e.set(Result{Node: c.Node, State: c.State, Text: c.Text})
		}
	}
	_ = Waiter{
		States: func(context.Context) (func(string) (model.Node, bool), error) { return e.Model.State, nil },
		Pause: func(ctx context.Context, _ time.Duration) {
			select {
			case <-changed:
			case <-again.C:
			case <-ctx.Done():
			}
		},
		OnChange: func(c *Confirmation) {
			if c.unsigned {
				e.note(unsignedNote)
			}
			e.set(Result{Node: c.Node, State: c.State, Text: cut(c.Text)})
		},
	}.Wait(ctx, all) // States never fails
}

// unsignedNote is the note if nodes reject an unsigned change.
const unsignedNote = "nodes with trust.keys refuse what no key they trust has signed: start muster fleet serve with --sign-key FILE"

// key returns the control key of the change for a node.
func (s *Spec) key(node string) string {
	if s.Target.Group != "" {
		return model.Key(model.GroupFamily(s.Target.Group), model.ControlPause)
	}

	return model.Key(model.NodeFamily(node), model.ControlPause)
}

// change returns the change for a node.
func (r *record) change(node string) PauseChange {
	out := PauseChange{Key: r.key(node)}
	if r.Kind == Pause {
		p := r.pause(r.Begun)
		out.Pause = &p
	}

	return out
}

// PauseSettling is the time after a change during which a node may still report the previous rejection.
const PauseSettling = 2 * time.Second

// PauseChange is a written pause or its removal.
type PauseChange struct {
	Key string
	// Pause is the written pause, nil for a removal.
	Pause *model.Pause
	// Revision is the revision of the pause, 0 if unknown.
	Revision uint64
}

// PauseStatus is the state of one node for a pause change.
type PauseStatus struct {
	// State is pending, done, failed or unreachable. An unreachable node applies the change when it reconnects.
	State State
	Text  string
	// Unsigned is set if the change failed because of a missing signature.
	Unsigned bool
}

// PausePending returns the status of a node that has not confirmed the change.
func PausePending() PauseStatus {
	return PauseStatus{State: StatePending, Text: "written, not confirmed yet"}
}

// Status implements Change.
func (c PauseChange) Status(n model.Node, known, settled bool) PauseStatus {
	if away, is := PauseUnreachable(n, known); is {
		return away
	}
	if c.inEffect(n) {
		return PauseStatus{State: StateDone, Text: c.text(n)}
	}
	if why := c.Rejection(n); settled && why != "" {
		return PauseStatus{State: StateFailed, Text: "refused: " + why, Unsigned: strings.Contains(why, signed.ErrUnsigned.Error())}
	}

	return PausePending()
}

// PauseUnreachable returns the status of a node that cannot apply a change now. The second result is
// false if the node is reachable.
func PauseUnreachable(n model.Node, known bool) (away PauseStatus, is bool) {
	const later = "; takes effect when it is back"
	why := ""
	switch {
	case n.Unreadable != "":
		why = "its state cannot be read"
	case !known || n.Silent:
		why = "unreachable" + later
	case n.Stopped():
		why = "stopped" + later
	default:
		return PauseStatus{}, false
	}

	return PauseStatus{State: StateUnreachable, Text: "written, not confirmed: " + why}, true
}

// inEffect reports whether the change is in effect on a node.
func (c PauseChange) inEffect(n model.Node) bool {
	revision, stated := n.PausedBy[c.Key]
	isFrom := n.Paused != nil && n.Paused.From == c.Key
	switch {
	case c.Pause == nil:
		return !stated && !isFrom
	case n.Paused == nil:
		return false
	case stated && c.Revision > 0:
		return revision >= c.Revision
	case isFrom:
		return n.Paused.At.Equal(c.Pause.At)
	case n.PausedBy != nil:
		return stated
	}

	// An older agent states one pause only. It confirms this one if the stated pause does not end sooner.
	return n.Paused.Until.IsZero() || !c.Pause.Until.IsZero() && !n.Paused.Until.Before(c.Pause.Until)
}

// text describes a node on which the change is in effect.
func (c PauseChange) text(n model.Node) string {
	switch {
	case c.Pause == nil && n.Paused == nil:
		return "resumed"
	case c.Pause == nil:
		return "still paused by " + n.Paused.From
	case n.Paused.From != c.Key:
		return "paused, also by " + n.Paused.From
	}

	return "paused"
}

// Rejection implements Change.
func (c PauseChange) Rejection(n model.Node) string {
	if len(n.RejectedControl) > 0 {
		return n.RejectedControl[c.Key]
	}
	// Older agents report it only in the message.
	_, why, _ := strings.Cut(n.Message, "rejected: "+c.Key+": ")

	return why
}
