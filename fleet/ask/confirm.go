package ask

import (
	"context"
	"time"

	"github.com/musterfleet/muster/model"
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
