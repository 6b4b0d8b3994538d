package provisioncmd

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
	name            string
	groups          []string
	oneAccount, jwt bool
}

func addPermissions(env *cli.Env, parent *fisk.CmdClause) {
	c := &permissionsCommand{Env: env}
	cmd := parent.Command("permissions", "Print the NATS permissions of a node")
	cmd.HelpLong("Needs no connection. The block belongs to the node's user in the configuration of nats-server, in the account NODES that muster fleet accounts prints; --jwt prints the claims of a user JWT. A node that changes its groups needs new permissions.\n\n" +
		"  muster fleet permissions web01 --groups web,linux\n  muster fleet permissions web01 --groups web --jwt")
	cmd.Arg("node", "Node id").Required().StringVar(&c.name)
	cmd.Flag("groups", "Groups of the node, comma separated; all is always included").PlaceHolder("GROUP,…").StringsVar(&c.groups)
	cmd.Flag("one-account", "The node is a user of the account with the streams, where nodes must trust each other").UnNegatableBoolVar(&c.oneAccount)
	cmd.Flag("jwt", "Print the claims of a user JWT").UnNegatableBoolVar(&c.jwt)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *permissionsCommand) run(context.Context) error {
	of := permissions.Of
	if c.oneAccount {
		of = permissions.InOneAccount
	}
	allowed, err := of(c.Flags.Prefix, c.name, split(c.groups))
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
		text = string(claims)
	}
	_, err = fmt.Fprint(c.Print.Out, text)

	return err
}

// split returns the words of comma separated lists.
func split(lists []string) []string {
	var words []string
	for _, list := range lists {
		words = append(words, strings.Split(list, ",")...)
	}

	return words
}
