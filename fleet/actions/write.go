package actions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/request"
	"github.com/musterfleet/muster/model"
)

const (
	// writers is how many pauses are written at the same time, writing how long all of them may take.
	writers = 8
	writing = 2 * time.Minute
	// settling is how long a node may still say that it rejects what was written before.
	settling = 2 * time.Second
)

// write pauses or resumes nodes, and waits until they do so.
func (d *Desk) write(ctx context.Context, e *entry, nodes []model.Node) error {
	limit, cancel := context.WithTimeout(ctx, writing)
	defer cancel()
	failed := d.writeAll(limit, e, nodes)
	if ctx.Err() != nil {
		return asEnded(ctx, ctx.Err())
	}
	if failed != nil && e.Target.Group != "" {
		return failed
	}
	d.awaitNodes(ctx, e, nodes)

	return nil
}

// writeAll writes to every target. What fails is a result of the node, or returned for a group.
func (d *Desk) writeAll(ctx context.Context, e *entry, nodes []model.Node) error {
	targets := make(chan fleet.Target)
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range writers {
		all.Go(func() {
			for t := range targets {
				if err := d.writeOne(ctx, e, t); err != nil {
					mu.Lock()
					failed = cmp.Or(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, t := range e.targets(nodes) {
		targets <- t
	}
	close(targets)
	all.Wait()

	return failed
}

// writeOne writes to one target.
func (d *Desk) writeOne(ctx context.Context, e *entry, t fleet.Target) error {
	var note string
	var err error
	if e.Kind == Pause {
		note, err = d.o.Doer.Pause(ctx, t.String(), e.pause(e.Begun))
	} else {
		note, err = d.o.Doer.Resume(ctx, t.String(), e.Author())
	}
	d.note(e, note)
	switch {
	case err == nil:
		return nil
	case t.Node == "":
	case errors.Is(err, model.ErrNotFound):
		d.set(e, d.notPaused(t.Node))
	default:
		d.set(e, Result{Node: t.Node, State: request.StateFailed, Text: cut(err.Error())})
	}

	return err
}

// notPaused returns the result of a node that has no pause of its own.
func (d *Desk) notPaused(name string) Result {
	r := Result{Node: name, State: request.StateDone, Text: "was not paused"}
	if n, known := d.o.Model.State(name); known && n.Paused != nil && n.Paused.From != model.Key(model.NodeFamily(name), model.ControlPause) {
		r.State, r.Text = request.StateFailed, "is paused by "+cut(n.Paused.From)+", and by nothing of its own"
	}

	return r
}

// awaitNodes waits until every node does what was written, or says why not; a while at most.
func (d *Desk) awaitNodes(ctx context.Context, e *entry, nodes []model.Node) {
	ctx, cancel := context.WithTimeout(ctx, d.o.Patience)
	defer cancel()
	changed, end := d.o.Model.Changes()
	defer end()
	again := time.NewTicker(settling)
	defer again.Stop()
	settled := false
	for {
		open := 0
		for _, n := range nodes {
			if !d.judge(e, n.Node, settled) {
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
func (d *Desk) judge(e *entry, name string, settled bool) bool {
	d.mu.Lock()
	before := e.results[name]
	d.mu.Unlock()
	if before.State == request.StateDone || before.State == request.StateFailed {
		return true
	}
	now := Result{Node: name, State: request.StatePending, Text: "has not said yet that it does"}
	n, known := d.o.Model.State(name)
	switch {
	case !known || n.Stopped() || n.Silent:
		now.State, now.Text = request.StateUnreachable, "does so when it is back"
	case e.obeys(n):
		now.State, now.Text = request.StateDone, obeyed(n)
	case settled && strings.Contains(n.Message, "rejected: "+e.key(name)):
		now.State, now.Text = request.StateFailed, cut(n.Message)
		if strings.Contains(n.Message, "not signed") {
			d.note(e, unsignedNote)
		}
	}
	if now.State != before.State || now.Text != before.Text {
		d.set(e, now)
	}

	return now.State != request.StatePending
}

// unsignedNote is for whoever ordered what nodes refuse since it is not signed.
const unsignedNote = "nodes with trust.keys refuse what no key they trust has signed: start muster fleet serve with --sign-key FILE"

// key returns the control key that is written for a node.
func (o *Order) key(node string) string {
	if o.Target.Group != "" {
		return model.Key(model.GroupFamily(o.Target.Group), model.ControlPause)
	}

	return model.Key(model.NodeFamily(node), model.ControlPause)
}

// obeys reports whether a node does what was written.
func (e *entry) obeys(n model.Node) bool {
	key := e.key(n.Node)
	if e.Kind == Resume {
		return n.Paused == nil || n.Paused.From != key
	}
	if n.Paused == nil {
		return false
	}

	if n.Paused.From == key {
		return n.Paused.At.Equal(e.pause(e.Begun).At)
	}

	// Another pause that ends later holds instead; one that ends sooner tells nothing of this one.
	return n.Paused.Until.IsZero() || !e.Until.IsZero() && !n.Paused.Until.Before(e.Until)
}

// obeyed describes the pause that holds on a node now.
func obeyed(n model.Node) string {
	if n.Paused == nil {
		return "is not paused"
	}

	return cut(fmt.Sprintf("%s (%s)", n.Paused, n.Paused.From))
}
