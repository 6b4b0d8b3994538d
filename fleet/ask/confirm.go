package ask

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// settling is the time after a change during which a node may still report the previous rejection.
const settling = 2 * time.Second

// Change is a change of a control document of nodes.
type Change interface {
	// Key is the key of the document.
	Key() string
	// Status returns the state of the change on a node that is reachable, with a description: StateDone, StateFailed or
	// StatePending. The description may be empty if the node has not confirmed the change.
	Status(n model.Node) (State, string)
}

// Confirmation is the state of a change on a node. An unreachable node applies the change when it reconnects.
type Confirmation struct {
	Node  string `json:"node"`
	State State  `json:"state"`
	Text  string `json:"text"`

	// unsigned is set if the change failed because of a missing signature.
	unsigned bool
	change   Change
	// before is the rejection before the change.
	before string
}

// NewConfirmation returns the pending confirmation of a change by a node. n is the state before the change.
func NewConfirmation(change Change, n model.Node) Confirmation {
	return Confirmation{Node: n.Node, State: StatePending, Text: unconfirmed, change: change, before: rejection(n, change.Key())}
}

// unconfirmed describes a node that has not confirmed a change.
const unconfirmed = "written, not confirmed yet"

// update updates the confirmation from the state of the node, unless it is final, and reports whether it changed. settled
// is set if a rejection of the node belongs to this change and not to the value before.
func (c *Confirmation) update(n model.Node, known, settled bool) (changed bool) {
	if c.State == StateDone || c.State == StateFailed {
		return false
	}
	state, text := c.State, c.Text
	if c.Text = away(n, known); c.Text != "" {
		c.State, c.Text = StateUnreachable, "written, not confirmed: "+c.Text
		return c.State != state || c.Text != text
	}
	c.State, c.Text = c.change.Status(n)
	c.Text = cmp.Or(c.Text, unconfirmed)
	if why := rejection(n, c.change.Key()); c.State == StatePending && why != "" && (settled || why != c.before) {
		c.State, c.Text, c.unsigned = StateFailed, "refused: "+why, strings.Contains(why, signed.ErrUnsigned.Error())
	}

	return c.State != state || c.Text != text
}

// rejection returns the reason why a node rejects the value under a key, empty if it does not.
func rejection(n model.Node, key string) string {
	if len(n.RejectedControl) > 0 {
		return n.RejectedControl[key]
	}
	// Older agents report it only in the message.
	_, why, _ := strings.Cut(n.Message, "rejected: "+key+": ")

	return why
}

// away returns the reason why a node cannot apply a change now, empty if it can.
func away(n model.Node, known bool) string {
	const later = "; takes effect when it is back"
	switch {
	case n.Unreadable != "":
		return "its state cannot be read"
	case !known || n.Silent:
		return "unreachable" + later
	case n.Stopped():
		return "stopped" + later
	default:
		return ""
	}
}

// Waiter waits until nodes confirm changes.
type Waiter struct {
	// States reads the states of the nodes and returns a lookup by name.
	States func(ctx context.Context) (func(node string) (model.Node, bool), error)
	// Pause, if set, waits before the next read. Without it, the pause grows with the duration of the last read.
	Pause func(ctx context.Context)
	// OnChange, if set, is called for each confirmation that changed.
	OnChange func(*Confirmation)
	// OnPending, if set, is called with the pending nodes before each pause.
	OnPending func(nodes []string)
}

const (
	// pollInterval is the minimum pause between two reads of the nodes. The pause is also at least pollFactor times as long
	// as the last read.
	pollInterval = 300 * time.Millisecond
	pollFactor   = 5
)

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
		settled, pending := time.Since(began) >= settling, []string(nil)
		for _, c := range all {
			n, known := state(c.Node)
			if c.update(n, known, settled) && w.OnChange != nil {
				w.OnChange(c)
			}
			if c.State == StatePending {
				pending = append(pending, c.Node)
			}
		}
		if len(pending) == 0 || ctx.Err() != nil {
			return nil
		}
		if w.OnPending != nil {
			w.OnPending(pending)
		}
		if w.Pause != nil {
			w.Pause(ctx)
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(pollInterval, pollFactor*time.Since(read))):
		}
	}
}

const (
	// writers is the maximum number of concurrent writes, and writing the time limit for all of them.
	writers = 8
	writing = 2 * time.Minute
)

// write pauses or resumes nodes and waits until they confirm.
func (x *Executor) write(ctx context.Context, r *record) error {
	limit, cancel := context.WithTimeout(ctx, writing)
	defer cancel()
	failed := x.writeAll(limit, r)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed != nil && r.Target.Group != "" {
		return failed
	}
	x.awaitNodes(ctx, r)

	return nil
}

// writeAll writes the change of every target. A failure is the result of its node, or the returned error for a group.
func (x *Executor) writeAll(ctx context.Context, r *record) error {
	var all errgroup.Group
	all.SetLimit(writers)
	for _, t := range r.targets(r.nodes) {
		if errors.Is(ctx.Err(), context.Canceled) {
			break // the other targets do not change
		}
		all.Go(func() error { return x.writeOne(ctx, r, t) })
	}

	return all.Wait()
}

// writeOne writes the change of one target.
func (x *Executor) writeOne(ctx context.Context, r *record, t fleet.Target) error {
	var note string
	var err error
	if r.Kind == Pause {
		note, err = x.Backend.Pause(ctx, t.String(), r.pause(r.Begun))
	} else {
		note, err = x.Backend.Resume(ctx, t.String(), r.Author())
	}
	x.note(r, note)
	switch {
	case err == nil:
		return nil
	case t.Node == "", errors.Is(ctx.Err(), context.Canceled):
	case errors.Is(err, model.ErrNotFound):
		x.set(r, x.notPaused(t.Node))
	default:
		x.set(r, Result{Node: t.Node, State: StateFailed, Text: cut(err.Error())})
	}

	return err
}

// notPaused returns the result of resuming a node that has no pause under its own key.
func (x *Executor) notPaused(name string) Result {
	r := Result{Node: name, State: StateDone, Text: "was not paused"}
	if n, known := x.Model.State(name); known && n.Paused != nil && n.Paused.From != model.Key(model.NodeFamily(name), model.ControlPause) {
		r.State, r.Text = StateFailed, "is paused by "+cut(n.Paused.From)+", not by its own pause"
	}

	return r
}

// awaitNodes waits until every node confirms or rejects the change, but not longer than Patience.
func (x *Executor) awaitNodes(ctx context.Context, r *record) {
	ctx, cancel := context.WithTimeout(ctx, x.Patience)
	defer cancel()
	changed, end := x.Model.Changes()
	defer end()
	again := time.NewTicker(settling)
	defer again.Stop()
	var all []*Confirmation
	for _, n := range r.nodes {
		if s := x.result(r, n.Node).State; s != StateDone && s != StateFailed {
			c := NewConfirmation(r.change(n.Node), n)
			all = append(all, &c)
			x.set(r, Result{Node: c.Node, State: c.State, Text: c.Text})
		}
	}
	_ = Waiter{
		States: func(context.Context) (func(string) (model.Node, bool), error) { return x.Model.State, nil },
		Pause: func(ctx context.Context) {
			select {
			case <-changed:
			case <-again.C:
			case <-ctx.Done():
			}
		},
		OnChange: func(c *Confirmation) {
			if c.unsigned {
				x.note(r, unsignedNote)
			}
			x.set(r, Result{Node: c.Node, State: c.State, Text: cut(c.Text)})
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
	out := PauseChange{ControlKey: r.key(node)}
	if r.Kind == Pause {
		p := r.pause(r.Begun)
		out.Pause = &p
	}

	return out
}

// PauseChange is a written pause or its removal.
type PauseChange struct {
	ControlKey string
	// Pause is the written pause, nil for a removal.
	Pause *model.Pause
	// Revision is the revision of the pause, 0 if unknown.
	Revision uint64
}

// Key implements Change.
func (c PauseChange) Key() string { return c.ControlKey }

// Status implements Change.
func (c PauseChange) Status(n model.Node) (State, string) {
	revision, stated := n.PausedBy[c.ControlKey]
	isFrom := n.Paused != nil && n.Paused.From == c.ControlKey
	switch {
	case c.Pause == nil && (stated || isFrom):
		return StatePending, ""
	case c.Pause == nil && n.Paused == nil:
		return StateDone, "resumed"
	case c.Pause == nil:
		return StateDone, "still paused by " + n.Paused.From
	case n.Paused == nil, stated && revision < c.Revision, isFrom && !stated && !n.Paused.At.Equal(c.Pause.At),
		!isFrom && !stated && (n.PausedBy != nil || endsSooner(n.Paused.Until, c.Pause.Until)):
		return StatePending, ""
	case !isFrom:
		return StateDone, "paused, also by " + n.Paused.From
	default:
		return StateDone, "paused"
	}
}

// endsSooner reports whether a pause ends before another. An older agent states one pause only: it confirms a pause if the
// stated one does not end sooner.
func endsSooner(stated, until time.Time) bool {
	return !stated.IsZero() && (until.IsZero() || stated.Before(until))
}

// GroupsChange is a change of the groups of a node.
type GroupsChange struct {
	ControlKey   string
	Joined, Left []string
	// Order lists the groups that must come first; empty if the order does not change.
	Order []string
}

// Key implements Change.
func (c GroupsChange) Key() string { return c.ControlKey }

// Status implements Change.
func (c GroupsChange) Status(n model.Node) (State, string) {
	isIn := func(group string) bool { return slices.Contains(n.Groups, group) }
	isOut := func(group string) bool { return !isIn(group) }
	isDenied := func(group string) bool { return isDenied(n.Message, group) }
	want := slices.DeleteFunc(slices.Clone(c.Order), isOut)
	switch still := slices.IndexFunc(c.Left, isIn); {
	case slices.ContainsFunc(c.Joined, isOut):
		return StatePending, ""
	case slices.ContainsFunc(c.Joined, isDenied):
		return StateFailed, "not in effect: " + n.Message
	case still >= 0:
		return StatePending, "written, but still in group " + c.Left[still] + ": check the node's agent.yaml"
	case !slices.Equal(n.Groups[:len(want)], want):
		return StatePending, ""
	default:
		return StateDone, "in effect"
	}
}

// isDenied reports whether a message says that NATS denies a group to the node.
func isDenied(message, group string) bool {
	family := model.GroupFamily(group)
	is := func(end string) bool { return strings.Contains(message, family+end) }

	return strings.Contains(message, model.ErrNotPermitted.Error()) && (is(".") || is(":") || is(" is "))
}
