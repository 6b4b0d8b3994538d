package ask

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/model"
)

const (
	// writers is how many pauses are written at the same time, writing how long all of them may take.
	writers = 8
	writing = 2 * time.Minute
)

// write pauses or resumes nodes, and waits until they do so.
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

// writeAll writes to every target. What fails is a result of the node, or returned for a group.
func (e *execution) writeAll(ctx context.Context) error {
	targets := make(chan fleet.Target)
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range writers {
		all.Go(func() {
			for t := range targets {
				if err := e.writeOne(ctx, t); err != nil {
					mu.Lock()
					failed = cmp.Or(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, t := range e.record.targets(e.nodes) {
		if errors.Is(ctx.Err(), context.Canceled) {
			break // the others stay as they are
		}
		targets <- t
	}
	close(targets)
	all.Wait()

	return failed
}

// writeOne writes to one target.
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

// notPaused returns the result of a node that has no pause of its own.
func (e *execution) notPaused(name string) Result {
	r := Result{Node: name, State: StateDone, Text: "was not paused"}
	if n, known := e.Model.State(name); known && n.Paused != nil && n.Paused.From != model.Key(model.NodeFamily(name), model.ControlPause) {
		r.State, r.Text = StateFailed, "is paused by "+cut(n.Paused.From)+", and by nothing of its own"
	}

	return r
}

// awaitNodes waits until every node does what was written, or says why not; a while at most.
func (e *execution) awaitNodes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Patience)
	defer cancel()
	changed, end := e.Model.Changes()
	defer end()
	again := time.NewTicker(PauseSettling)
	defer again.Stop()
	settled := false
	for {
		open := 0
		for _, n := range e.nodes {
			if !e.judge(n.Node, settled) {
				open++
			}
		}
		if open == 0 {
			return
		}
		select {
		case <-changed:
		case <-again.C:
			settled = true
		case <-ctx.Done():
			return
		}
	}
}

// judge notes what a node does of what was written, and reports whether that stays so.
func (e *execution) judge(name string, settled bool) bool {
	before := e.registry.result(e.record, name)
	if before.State == StateDone || before.State == StateFailed {
		return true
	}
	n, known := e.Model.State(name)
	status := e.record.change(name).Status(n, known, settled)
	if status.Unsigned {
		e.note(unsignedNote)
	}
	now := Result{Node: name, State: status.State, Text: cut(status.Text)}
	if now.State != before.State || now.Text != before.Text {
		e.set(now)
	}

	return now.State != StatePending
}

// unsignedNote is for whoever acts where nodes refuse what is done since it is not signed.
const unsignedNote = "nodes with trust.keys refuse what no key they trust has signed: start muster fleet serve with --sign-key FILE"

// key returns the control key that is written for a node.
func (s *Spec) key(node string) string {
	if s.Target.Group != "" {
		return model.Key(model.GroupFamily(s.Target.Group), model.ControlPause)
	}

	return model.Key(model.NodeFamily(node), model.ControlPause)
}

// change returns what is written for a node.
func (r *record) change(node string) PauseChange {
	out := PauseChange{Key: r.key(node)}
	if r.Kind == Pause {
		p := r.pause(r.Begun)
		out.Pause = &p
	}

	return out
}
