package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// rmCommand implements muster fleet rm.
type rmCommand struct {
	*cli.Env
	print.Format
	TargetFlags
	Signing
	names []string
}

// removed is the result for one key.
type removed struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
}

// addRm adds muster fleet rm.
func addRm(env *cli.Env, parent *fisk.CmdClause) {
	c := &rmCommand{Env: env}
	cmd := parent.Command("rm", "Remove assignments of nodes and groups")
	cmd.HelpLong("Nodes stop maintaining the state. They do not undo changes.\n\n" +
		"  muster fleet rm node.web01.motd\n  muster fleet rm motd --group web --node web01")
	cmd.Arg("name", "Names, with --node, --group or --all; or keys (see muster fleet ls)").Required().HintAction(env.CompleteAssignments).StringsVar(&c.names)
	c.addYes(cmd)
	c.AddTargets(env, cmd)
	c.AddSigning(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

func (c *rmCommand) keys() ([]string, error) {
	var keys []string
	for _, name := range c.names {
		// An invalid key is removed if it exists.
		if assign.IsKey(name) || !c.HasTargets() {
			keys = append(keys, name)
			continue
		}
		if err := CheckNameOrKey(name); err != nil {
			return nil, err
		}
		list, err := c.TargetList()
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
	signer, err := c.Open(c.Env)
	if err != nil {
		return err
	}
	store, err := Open(ctx, c.Env, NeedManifests, NeedNodes)
	if err != nil {
		return err
	}
	var failed []error
	for _, key := range keys {
		failed = append(failed, c.check(ctx, store, key))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("%w\nnot removed", err)
	}
	if err := c.confirmAll(ctx, store, keys); err != nil {
		return err
	}
	var done []removed
	for _, key := range keys {
		revision, err := c.remove(ctx, store, signer, key)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, removed{key, revision})
	}
	err = c.Print.Result(c.Format, done, func() {
		for _, r := range done {
			c.Print.Printf("%s removed, revision %d\n", r.Key, r.Revision)
		}
	})

	return errors.Join(append(failed, err)...)
}

// confirmAll asks before removing an assignment of all nodes.
func (c *rmCommand) confirmAll(ctx context.Context, store *Store, keys []string) error {
	isOfAll := func(key string) bool {
		t, _, err := fleet.ParseKey(key)
		return err == nil && t.Group == model.GroupAll
	}
	if c.yes || !slices.ContainsFunc(keys, isOfAll) {
		return nil
	}
	nodes, err := store.Nodes(ctx)
	if err != nil {
		return err
	}

	return selection{known: nodes, isAll: true}.confirmAll(c.Env, "removed")
}

// remove removes a key. The removal is signed if there is a signer, unless the key is invalid: nodes do not
// read invalid keys.
func (c *rmCommand) remove(ctx context.Context, store *Store, signer *assign.Signing, key string) (uint64, error) {
	if !isAssignmentKey(key) {
		return store.DeleteInvalid(ctx, key)
	}
	// The removal does not need the value, so it may be unusable.
	current, err := store.Get(ctx, key)
	if err != nil && !errors.Is(err, model.ErrNotFound) && !errors.Is(err, model.ErrUnusable) {
		return 0, err
	}
	if signer == nil {
		if signed.IsEnvelope(current.Value) {
			warnUnsigned(c.Log)(key)
		}
		return store.Delete(ctx, key, nil)
	}
	proof, err := signer.Sign(ctx, signed.Remove, key, nil, current.Value)
	if err != nil {
		return 0, err
	}

	return store.Delete(ctx, key, proof)
}

func isAssignmentKey(key string) bool {
	return assign.IsKey(key) && CheckNameOrKey(key) == nil
}

// check returns an error for a key that cannot be removed. These can be removed: an assignment, a key that
// nodes still run after the bucket was recreated, and an invalid key.
func (c *rmCommand) check(ctx context.Context, store *Store, key string) error {
	if !isAssignmentKey(key) {
		return c.checkInvalid(ctx, store, key)
	}
	_, err := store.Get(ctx, key)
	if errors.Is(err, model.ErrUnusable) {
		return nil
	}
	if !errors.Is(err, model.ErrNotFound) {
		return err
	}
	nodes, err := store.Nodes(ctx)
	if err == nil && !slices.ContainsFunc(nodes, func(n model.Node) bool { return n.Manifests[key].Revision > 0 }) {
		err = store.NotAssigned(ctx, key)
	}

	return err
}

// checkInvalid returns an error for an invalid key that is not in the bucket.
func (c *rmCommand) checkInvalid(ctx context.Context, store *Store, key string) error {
	all, err := store.Invalid(ctx)
	if err != nil || slices.ContainsFunc(all, func(e model.Entry) bool { return e.Key == key }) {
		return err
	}
	if err := CheckNameOrKey(key); err != nil {
		return err
	}
	// key may be a name without a target.
	named, err := store.Named(ctx, nil, key)
	if err != nil {
		return err
	}
	if keys := keysOf(named); len(keys) > 0 {
		return cli.Usagef("%s needs a target; give %s, or a full key: %s", key, FlagsOf(keys), SomeKeys(key, keys))
	}

	return store.NotAssigned(ctx, key)
}

// warnUnsigned returns a function that warns when an unsigned value replaces a signed one.
func warnUnsigned(log *slog.Logger) func(key string) {
	return func(key string) {
		log.Warn("replacing a signed revision with an unsigned one; nodes that require signatures reject it (give --sign-key FILE)", "key", key)
	}
}
