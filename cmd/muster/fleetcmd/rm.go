package fleetcmd

import (
	"context"
	"errors"
	"slices"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/model"
)

// rmCommand is muster fleet rm.
type rmCommand struct {
	*cli.Env
	print.Format
	targets
	names []string
}

// removed is the result for one key.
type removed struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
}

func addRm(env *cli.Env, parent *fisk.CmdClause) {
	c := &rmCommand{Env: env}
	cmd := parent.Command("rm", "Remove assignments of nodes and groups")
	cmd.HelpLong("Nodes stop maintaining that state, and undo nothing.\n\n" +
		"  muster fleet rm node.web01.motd\n  muster fleet rm motd --group web --node web01")
	cmd.Arg("name", "Names, with --node, --group or --all; or keys (see muster fleet ls)").Required().StringsVar(&c.names)
	c.addTargets(cmd, "group")
	c.AddFormat(cmd)
	cmd.Action(env.Operation(cli.UnlessNoop(c.run)))
}

func (c *rmCommand) keys() ([]string, error) {
	var keys []string
	for _, name := range c.names {
		// An invalid key is removed if it exists.
		if isKey(name) || !c.given() {
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

func (c *rmCommand) run(ctx context.Context) error {
	keys, err := c.keys()
	if err != nil {
		return err
	}
	store, err := open(ctx, c.Env)
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
	err = c.Print.Result(c.Format, done, func() {
		for _, r := range done {
			c.Print.Printf("%s removed, revision %d\n", r.Key, r.Revision)
		}
	})

	return errors.Join(append(failed, err)...)
}

// remove removes an assignment, or an invalid key. Where that does not exist
// either, the error is in the key.
func (c *rmCommand) remove(ctx context.Context, store *store, key string) (removed, error) {
	invalid := checkNameOrKey(key)
	if invalid == nil && isKey(key) {
		return removeAssignment(ctx, store, key)
	}
	revision, err := store.DeleteInvalid(ctx, key)
	switch {
	case err == nil:
		return removed{Key: key, Revision: revision}, nil
	case !errors.Is(err, model.ErrNotFound) && !errors.Is(err, model.ErrInvalidName):
		return removed{}, err
	case invalid == nil:
		_, invalid = c.list()
	}

	return removed{}, invalid
}

// removeAssignment deletes an assignment, or one that nodes still run from before
// the bucket was recreated.
func removeAssignment(ctx context.Context, store *store, key string) (removed, error) {
	_, err := store.Get(ctx, key)
	if errors.Is(err, model.ErrNotFound) {
		err = nil
		nodes, unread := store.Nodes(ctx)
		switch {
		case unread != nil:
			err = unread
		case !slices.ContainsFunc(nodes, func(n model.Node) bool { return n.Manifests[key].Revision > 0 }):
			err = notAssigned(key)
		}
	}
	if err != nil {
		return removed{}, err
	}
	revision, err := store.Delete(ctx, key)

	return removed{Key: key, Revision: revision}, err
}
