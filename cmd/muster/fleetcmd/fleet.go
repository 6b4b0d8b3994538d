// Package fleetcmd holds the operator's commands, muster fleet.
package fleetcmd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore/assignments"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
)

// Add adds the commands to the command line.
func Add(env *cli.Env, app *fisk.Application) {
	cmd := app.Command("fleet", "Manage a fleet: assign manifests to nodes, watch and query them")
	cmd.HelpLong("Nodes run `muster agent run`; everything between them and these commands is in NATS, at --server or --context.\n\n" +
		"  muster fleet init                          create the buckets and streams\n" +
		"  muster fleet push --group web motd.yaml    assign a manifest to a group\n" +
		"  muster fleet wait motd                     wait until every node runs it\n" +
		"  muster fleet reports                       follow the reports\n" +
		"  muster fleet ensure exec uptime --all      run a command on all nodes")
	addInit(env, cmd)
	addPush(env, cmd)
	addRm(env, cmd)
	addLs(env, cmd)
	addShow(env, cmd)
	addRollback(env, cmd)
	addNodes(env, cmd)
	addEnsure(env, cmd)
	addReports(env, cmd)
	addWait(env, cmd)
	addPermissions(env, cmd)
}

// open returns the fleet on NATS, once it is provisioned.
func open(ctx context.Context, env *cli.Env) (*store, error) {
	s, err := env.Store(ctx)
	if err != nil {
		return nil, err
	}
	err = provision.New(s).Check(ctx)
	switch {
	case errors.Is(err, provision.ErrDiffers):
		env.Log.Warn("provisioning is not up to date", "error", err)
	case err != nil:
		return nil, err
	}

	return &store{Bucket: assignments.New(s), kv: s, log: env.Log, logged: map[string]bool{}}, nil
}

// targets are the flags that select nodes.
type targets struct {
	nodes, groups []string
	all           bool
	groupFlag     string
}

// addTargets adds the flags. The name of the group flag differs where a resource
// has a property of that name.
func (t *targets) addTargets(cmd *fisk.CmdClause, group string) {
	t.groupFlag = group
	cmd.Flag("node", "Target node; repeatable").PlaceHolder("NODE").StringsVar(&t.nodes)
	cmd.Flag(group, "Target group; repeatable").PlaceHolder("GROUP").StringsVar(&t.groups)
	cmd.Flag("all", "Target all nodes").UnNegatableBoolVar(&t.all)
}

func (t *targets) given() bool { return len(t.nodes)+len(t.groups) > 0 || t.all }

// list returns the targets, at least one, all of them valid.
func (t *targets) list() ([]fleet.Target, error) {
	list := fleet.Targets(t.nodes, t.groups, t.all)
	switch {
	case len(list) == 0:
		return nil, cli.Usagef("no target: give --node NODE, --%s GROUP or --all", t.groupFlag)
	case slices.Contains(t.nodes, ""):
		return nil, cli.Usagef("--node needs a name, this one is empty")
	case slices.Contains(t.groups, ""):
		return nil, cli.Usagef("--%s needs a name, this one is empty", t.groupFlag)
	}
	for _, target := range list {
		if err := model.CheckFamily(target.String()); err != nil {
			return nil, cli.Usagef("%w", err)
		}
	}

	return list, nil
}

// isKey reports whether a text is a key, node.web01.motd, and not a name, motd.
func isKey(text string) bool { return strings.Contains(text, ".") }

// checkNameOrKey checks a manifest's name, or a key.
func checkNameOrKey(text string) error {
	err := model.CheckName(text)
	if isKey(text) {
		_, _, err = fleet.ParseKey(text)
	}
	if err != nil {
		return cli.Usagef("%w", err)
	}

	return nil
}
