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
	"github.com/musterfleet/muster/fleet/assign"
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

// Update updates confirmations from the states of nodes and returns the pending nodes. began is the time of the change.
// onChange, if set, is called for each confirmation that changed.
func Update(all []*Confirmation, began time.Time, state func(node string) (model.Node, bool), onChange func(*Confirmation)) (pending []string) {
	settled := time.Since(began) >= settling
	for _, c := range all {
		n, known := state(c.Node)
		if c.update(n, known, settled) && onChange != nil {
			onChange(c)
		}
		if c.State == StatePending {
			pending = append(pending, c.Node)
		}
	}

	return pending
}

// pollInterval is the minimum pause between two reads of the nodes.
const pollInterval = 300 * time.Millisecond

// Await reads the nodes until no confirmation is pending or ctx ends, which is no error. It calls onPending
// with the pending nodes after each read, unless there are none.
func Await(ctx context.Context, all []*Confirmation, nodes assign.NodeLister, onPending func(nodes []string)) error {
	began := time.Now()
	err := assign.Poll(ctx, pollInterval, nil, func() (bool, error) {
		known, err := nodes.Nodes(ctx)
		if err != nil {
			return false, err
		}
		states := map[string]model.Node{}
		for _, n := range known {
			states[n.Node] = n
		}
		pending := Update(all, began, func(name string) (model.Node, bool) { n, is := states[name]; return n, is }, nil)
		if len(pending) > 0 {
			onPending(pending)
		}

		return len(pending) == 0, nil
	})
	if ctx.Err() != nil {
		return nil
	}

	return err
}

const (
	// writers is the maximum number of concurrent writes, and writing the time limit for all of them.
	writers = 8
	writing = 2 * time.Minute
)

// write pauses or resumes nodes and waits until they confirm.
func (r *record) write(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, writing)
	defer cancel()
	failed := r.writeAll(limit)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed != nil && r.Target.Group != "" {
		return failed
	}
	r.awaitNodes(ctx)

	return nil
}

// writeAll writes the change of every target. A failure is the result of its node, or the returned error for a group.
func (r *record) writeAll(ctx context.Context) error {
	var all errgroup.Group
	all.SetLimit(writers)
	for _, t := range r.targets(r.nodes) {
		if errors.Is(ctx.Err(), context.Canceled) {
			break // the other targets do not change
		}
		all.Go(func() error { return r.writeOne(ctx, t) })
	}

	return all.Wait()
}

// writeOne writes the change of one target.
func (r *record) writeOne(ctx context.Context, t fleet.Target) error {
	var note string
	var err error
	if r.Kind == Pause {
		note, err = r.x.Backend.Pause(ctx, t.String(), r.pause(r.Begun))
	} else {
		note, err = r.x.Backend.Resume(ctx, t.String(), r.Author())
	}
	r.note(note)
	switch {
	case err == nil:
		return nil
	case t.Node == "", errors.Is(ctx.Err(), context.Canceled):
	case errors.Is(err, model.ErrNotFound):
		r.set(r.notPaused(t.Node))
	default:
		r.set(Result{Node: t.Node, State: StateFailed, Text: cut(err.Error())})
	}

	return err
}

// notPaused returns the result of resuming a node that has no pause under its own key.
func (r *record) notPaused(name string) Result {
	out := Result{Node: name, State: StateDone, Text: "was not paused"}
	if n, known := r.x.Model.State(name); known && n.Paused != nil && n.Paused.From != model.Key(model.NodeFamily(name), model.ControlPause) {
		out.State, out.Text = StateFailed, "is paused by "+cut(n.Paused.From)+", not by its own pause"
	}

	return out
}

// awaitNodes waits until every node confirms or rejects the change, but not longer than Patience.
func (r *record) awaitNodes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.x.Patience)
	defer cancel()
	changed, end := r.x.Model.Changes()
	defer end()
	again := time.NewTicker(settling)
	defer again.Stop()
	var all []*Confirmation
	for _, n := range r.nodes {
		if s := r.result(n.Node).State; s != StateDone && s != StateFailed {
			c := NewConfirmation(r.change(n.Node), n)
			all = append(all, &c)
			r.set(Result{Node: c.Node, State: c.State, Text: c.Text})
		}
	}
	onChange := func(c *Confirmation) {
		if c.unsigned {
			r.note(unsignedNote)
		}
		r.set(Result{Node: c.Node, State: c.State, Text: cut(c.Text)})
	}
	for began := time.Now(); len(Update(all, began, r.x.Model.State, onChange)) > 0 && ctx.Err() == nil; {
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
		}
	}
}

// unsignedNote is the note if nodes reject an unsigned change.
const unsignedNote = "nodes with trust.keys refuse what no key they trust has signed: start muster fleet serve with --sign-key FILE"

// change returns the change for a node.
func (r *record) change(node string) PauseChange {
	family := model.NodeFamily(node)
	if r.Target.Group != "" {
		family = model.GroupFamily(r.Target.Group)
	}
	out := PauseChange{ControlKey: model.Key(family, model.ControlPause)}
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
