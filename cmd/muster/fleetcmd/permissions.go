package fleetcmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore/permissions"
)

// permissionsCommand is muster fleet permissions.
type permissionsCommand struct {
	*cli.Env
	print.Format
	node   string
	groups []string
	jwt    bool
}

func addPermissions(env *cli.Env, parent *fisk.CmdClause) {
	c := &permissionsCommand{Env: env}
	cmd := parent.Command("permissions", "Print the NATS permissions of a node")
	cmd.HelpLong("Needs no connection. The block belongs to the node's user in the configuration of nats-server; --jwt prints the claims of a user JWT. A node that changes its groups needs new permissions.\n\n" +
		"  muster fleet permissions web01 --groups web,linux\n  muster fleet permissions web01 --groups web --jwt")
	cmd.Arg("node", "Node id").Required().StringVar(&c.node)
	cmd.Flag("groups", "Groups of the node, comma separated; all is always included").PlaceHolder("GROUP,…").StringsVar(&c.groups)
	cmd.Flag("jwt", "Print the claims of a user JWT").UnNegatableBoolVar(&c.jwt)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *permissionsCommand) run(context.Context) error {
	var groups []string
	for _, list := range c.groups {
		groups = append(groups, strings.Split(list, ",")...)
	}
	allowed, err := permissions.Of(c.Flags.Prefix, c.node, groups)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if c.IsDocument() {
		return c.Print.Document(allowed, c.YAML)
	}
	text := allowed.ServerConfig()
	if c.jwt {
		claims, err := allowed.ClaimsJSON()
		if err != nil {
			return err
		}
		text = string(claims) + "\n"
	}
	_, err = fmt.Fprint(c.Print.Out, text)

	return err
}
