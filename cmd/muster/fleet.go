package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/choria-io/fisk"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
)

// addFleet declares the operator's commands.
func (a *app) addFleet(ctx context.Context, cli *fisk.Application) {
	cmd := cli.Command("fleet", "Run a fleet: assign manifests to nodes, watch them, ask them")
	cmd.HelpLong("Nodes run `muster agent run`; everything between them and these commands is in NATS, found by --server or --context.\n\n" +
		"  muster fleet init                          make the buckets and streams\n" +
		"  muster fleet push --group web motd.yaml    assign a manifest to a group\n" +
		"  muster fleet wait motd                     until every node runs it\n" +
		"  muster fleet reports                       see what happens, live\n" +
		"  muster fleet ensure exec uptime --all      ask all nodes at once")
	a.addFleetInit(ctx, cmd)
	a.addFleetPush(ctx, cmd)
	a.addFleetRm(ctx, cmd)
	a.addFleetLs(ctx, cmd)
	a.addFleetShow(ctx, cmd)
	a.addFleetNodes(ctx, cmd)
	a.addFleetEnsure(ctx, cmd)
	a.addFleetReports(ctx, cmd)
	a.addFleetWait(ctx, cmd)
	a.addFleetPermissions(cmd)
}

// fleet gives the fleet on NATS, after it was found to be provisioned.
func (a *app) fleet(ctx context.Context) (*fleetStore, error) {
	store, err := a.store(ctx)
	if err != nil {
		return nil, err
	}
	err = store.Check(ctx)
	switch {
	case errors.Is(err, provision.ErrDiffers):
		a.log.Warn("the fleet works all the same", "error", err)
	case err != nil:
		return nil, err
	}

	return &fleetStore{natsStore: store, log: a.log, told: map[string]bool{}}, nil
}

// operation makes an operator's command of f, which says what to do about a
// server that cannot be used.
func (a *app) operation(f func() error) fisk.Action {
	return a.action(func() error { return a.connectHint(f()) })
}

// unlessNoop gives f, which changes more than this muster is allowed where what
// started it changes nothing.
func unlessNoop(f func() error) func() error {
	return func() error {
		if noop(false) {
			return errNoop
		}
		return f()
	}
}

// errNoop is a command that a guard or the like of a run in noop started.
var errNoop = errors.New("what started this changes nothing (" + engine.EnvNoop + " is set), so this does not either: nothing was done")

// connectHint says what to do about a server that cannot be reached, or does not
// take these credentials.
func (a *app) connectHint(err error) error {
	var network *net.OpError
	named := a.connectSet[0] || a.connectSet[1]
	switch {
	case errors.Is(err, kvstore.ErrNotPermitted):
		return fmt.Errorf("%w (operators need the whole account)", err)
	case !errors.Is(err, kvstore.ErrConnect):
		return err
	case errors.Is(err, nats.ErrAuthorization):
		return fmt.Errorf("%w (name other credentials, with --creds or --nkey)", err)
	case !named && (errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || errors.As(err, &network)):
		return fmt.Errorf("%w (name a server with --server, or a context of the nats tools with --context)", err)
	default:
		return err
	}
}

// targets are the flags that say whom a command is for.
type targets struct {
	nodes, groups []string
	all           bool
	groupFlag     string
}

func (t *targets) add(cmd *fisk.CmdClause) { t.addAs(cmd, "group") }

// addAs gives the flag of groups another name, where a resource has a property
// of that one.
func (t *targets) addAs(cmd *fisk.CmdClause, group string) {
	t.groupFlag = group
	cmd.Flag("node", "A node; may be given several times").PlaceHolder("NODE").StringsVar(&t.nodes)
	cmd.Flag(group, "The nodes of a group; may be given several times").PlaceHolder("GROUP").StringsVar(&t.groups)
	cmd.Flag("all", "All nodes").UnNegatableBoolVar(&t.all)
}

// list gives the targets, at least one, every one of them valid.
func (t *targets) list() ([]fleet.Target, error) {
	list := fleet.Targets(t.nodes, t.groups, t.all)
	if len(list) == 0 {
		return nil, usagef("say whom it is for: --node NODE, --%s GROUP or --all", t.groupFlag)
	}
	switch {
	case slices.Contains(t.nodes, ""):
		return nil, usagef("--node needs a name, this one is empty")
	case slices.Contains(t.groups, ""):
		return nil, usagef("--%s needs a name, this one is empty", t.groupFlag)
	}
	for _, target := range list {
		if err := model.CheckFamily(target.String()); err != nil {
			return nil, usagef("%w", err)
		}
	}

	return list, nil
}

// isKey tells a key, node.web01.motd, from a manifest's name, motd.
func isKey(text string) bool { return strings.Contains(text, ".") }

// checkNameOrKey checks what is either a manifest's name or a key.
func checkNameOrKey(text string) error {
	err := model.CheckName(text)
	if isKey(text) {
		_, _, err = fleet.ParseKey(text)
	}
	if err != nil {
		return usagef("%w", err)
	}

	return nil
}
