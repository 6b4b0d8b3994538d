package serve

import (
	"context"
	"errors"
	"time"

	"github.com/musterfleet/muster/model"
)

// listNodes tells all nodes, and now and then which are no more.
func (f *feed) listNodes(ctx context.Context) error {
	if err := f.listOnce(ctx); err != nil {
		return err
	}
	f.to.Clear("nodes")
	f.isListed.Do(func() { close(f.listed) })
	for {
		if err := pause(ctx, listPause); err != nil {
			return err
		}
		if err := f.pruneNodes(ctx); err != nil {
			return err
		}
	}
}

// listOnce tells all nodes.
func (f *feed) listOnce(ctx context.Context) error {
	asked := time.Now()
	all, err := f.Nodes.Readable(ctx)
	if err != nil {
		return err
	}
	f.to.SetNodes(asked, all)

	return nil
}

// pruneNodes removes nodes whose state has expired, which is not announced.
func (f *feed) pruneNodes(ctx context.Context) error {
	stored := map[string]bool{}
	for name, err := range f.Nodes.Stored(ctx) {
		if err != nil {
			return err
		}
		stored[name] = true
	}
	for _, name := range f.to.NodeNames() {
		if stored[name] {
			continue
		}
		if _, err := f.Nodes.State(ctx, name); errors.Is(err, model.ErrNotFound) {
			f.to.RemoveNode(name)
		}
	}

	return nil
}

// followNodes tells what nodes store: first once more what they have.
func (f *feed) followNodes(ctx context.Context) error {
	for c, err := range f.Nodes.Watch(ctx) {
		if err != nil {
			return err
		}
		if c.Gone {
			f.to.RemoveNode(c.Node.Node)
		} else {
			f.to.SetNode(c.Node)
		}
	}

	return ctx.Err()
}

// listAssignments tells what is assigned, again whenever that changed.
func (f *feed) listAssignments(ctx context.Context, changed <-chan struct{}) error {
	again := time.NewTicker(listPause)
	defer again.Stop()
	for {
		entries, err := f.Assignments.List(ctx)
		if err != nil {
			return err
		}
		f.to.SetAssignments(entries)
		f.to.Clear("assignments")
		select {
		case <-changed:
			if err := pause(ctx, settlePause); err != nil {
				return err
			}
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// followAssignments notes when an assignment changes.
func (f *feed) followAssignments(ctx context.Context, changed chan<- struct{}) error {
	for err := range f.Assignments.Changes(ctx) {
		if err != nil {
			return err
		}
		select {
		case changed <- struct{}{}:
		default: // it is noted already
		}
	}

	return ctx.Err()
}
