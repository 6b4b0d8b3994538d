package ask

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

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
