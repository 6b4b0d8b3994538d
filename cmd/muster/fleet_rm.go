package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/model"
)

// fleetRmCommand is muster fleet rm.
type fleetRmCommand struct {
	targets
	format
	names []string
}

// removed is what came of one key.
type removed struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision,omitempty"`
	// Absent says that it was not assigned.
	Absent bool `json:"absent,omitempty"`
}

func (a *app) addFleetRm(ctx context.Context, parent *fisk.CmdClause) {
	c := &fleetRmCommand{}
	cmd := parent.Command("rm", "Take assignments away from nodes and groups")
	cmd.HelpLong("Nodes stop holding that state; what was made stays as it is. What was not assigned is told and is no error.\n\n" +
		"  muster fleet rm node.web01.motd\n  muster fleet rm motd --group web --node web01")
	cmd.Arg("name", "Names, with --node, --group or --all; or keys as muster fleet ls shows them").Required().StringsVar(&c.names)
	c.targets.add(cmd)
	c.format.add(cmd)
	cmd.Action(a.operation(unlessNoop(func() error { return a.fleetRm(ctx, c) })))
}

func (c *fleetRmCommand) keys() ([]string, error) {
	var keys []string
	for _, name := range c.names {
		// A key of another form is removed where it is there.
		if isKey(name) || len(c.nodes)+len(c.groups) == 0 && !c.all {
			keys = append(keys, name)
			continue
		}
		if err := checkNameOrKey(name); err != nil {
			return nil, err
		}
		list, err := c.list()
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			keys = append(keys, t.Key(name))
		}
	}

	return keys, nil
}

func (a *app) fleetRm(ctx context.Context, c *fleetRmCommand) error {
	keys, err := c.keys()
	if err != nil {
		return err
	}
	store, err := a.fleet(ctx)
	if err != nil {
		return err
	}
	var done []removed
	var failed []error
	for _, key := range keys {
		r, err := c.remove(ctx, store, key)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, r)
	}
	if c.isDocument() {
		return errors.Join(append(failed, a.printDocument(done, c.yaml))...)
	}
	for _, r := range done {
		if r.Absent {
			fmt.Fprintf(a.stdout, "%s was not assigned\n", r.Key)
			continue
		}
		fmt.Fprintf(a.stdout, "%s removed, revision %d\n", r.Key, r.Revision)
	}

	return errors.Join(failed...)
}

// remove takes a key away, also one that is none of an assignment. When that is
// not there it was a mistake.
func (c *fleetRmCommand) remove(ctx context.Context, store *fleetStore, key string) (removed, error) {
	wrong := checkNameOrKey(key)
	if wrong == nil && isKey(key) {
		return store.remove(ctx, key)
	}
	revision, err := store.DeleteInvalid(ctx, key)
	switch {
	case err == nil:
		return removed{Key: key, Revision: revision}, nil
	case !errors.Is(err, model.ErrNotFound) && !errors.Is(err, model.ErrInvalidName):
		return removed{}, err
	case wrong == nil:
		_, wrong = c.list()
	}

	return removed{}, wrong
}

// remove takes an assignment away. One that is not there is written over all
// the same: a node may still hold it from before the bucket was made anew.
func (f *fleetStore) remove(ctx context.Context, key string) (removed, error) {
	_, err := f.natsStore.Get(ctx, key)
	absent := errors.Is(err, model.ErrNotFound)
	if err != nil && !absent {
		return removed{}, err
	}
	revision, err := f.Delete(ctx, key)

	return removed{Key: key, Revision: revision, Absent: absent}, err
}
