package main

import (
	"fmt"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/kvstore/permissions"
)

// fleetPermissionsCommand is muster fleet permissions.
type fleetPermissionsCommand struct {
	node   string
	groups []string
	jwt    bool
	format
}

func (a *app) addFleetPermissions(parent *fisk.CmdClause) {
	c := &fleetPermissionsCommand{}
	cmd := parent.Command("permissions", "Print what a node may do with NATS: its own part of the fleet, and nothing else")
	cmd.HelpLong("Needs no connection. The block is for the node's user in the configuration of nats-server; --jwt prints the same for the claims of a user's JWT. A node that changes its groups needs new ones.\n\n" +
		"  muster fleet permissions web01 --groups web,linux\n  muster fleet permissions web01 --groups web --jwt")
	cmd.Arg("node", "The node's id").Required().StringVar(&c.node)
	cmd.Flag("groups", "Groups the node is in, separated by commas; all is always one of them").PlaceHolder("GROUP,…").StringsVar(&c.groups)
	cmd.Flag("jwt", "Print the permissions of a JWT's claims").UnNegatableBoolVar(&c.jwt)
	c.format.add(cmd)
	cmd.Action(a.action(func() error { return a.fleetPermissions(c) }))
}

func (a *app) fleetPermissions(c *fleetPermissionsCommand) error {
	var groups []string
	for _, list := range c.groups {
		groups = append(groups, strings.Split(list, ",")...)
	}
	permissions, err := permissions.Of(a.prefix, c.node, groups)
	if err != nil {
		return usagef("%w", err)
	}
	if c.isDocument() {
		return a.printDocument(permissions, c.yaml)
	}
	if !c.jwt {
		_, err = fmt.Fprint(a.stdout, permissions.ServerConfig())
		return err
	}
	text, err := permissions.ClaimsJSON()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", text)

	return err
}
