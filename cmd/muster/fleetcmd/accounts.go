package fleetcmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore/provision"
)

// accountsCommand implements muster fleet accounts.
type accountsCommand struct {
	*cli.Env
	jwt   bool
	nodes int
}

// maxNodes is the largest number of nodes that the limits of nats-server can express.
const maxNodes = 1_000_000

func addAccounts(env *cli.Env, parent *fisk.CmdClause) {
	c := &accountsCommand{Env: env}
	cmd := parent.Command("accounts", "Print the NATS accounts of a fleet")
	cmd.HelpLong("Prints a block for the configuration of nats-server, without a connection. It has an account with the streams for administrators, and one account each for nodes, for other operators, and for users who may send requests to nodes. Limits prevent one user from displacing the others. " +
		"--jwt prints the claims of the account JWTs, with public keys and activations left to fill in.\n\n" +
		"  muster fleet accounts >accounts.conf\n  muster fleet permissions web01 --groups web >web01.conf")
	cmd.Flag("nodes", "Number of nodes that the limits of connections allow").Default(strconv.Itoa(provision.DefaultNodes)).PlaceHolder("N").IntVar(&c.nodes)
	cmd.Flag("jwt", "Print the claims of account JWTs").UnNegatableBoolVar(&c.jwt)
	cmd.Action(env.Action(c.run))
}

func (c *accountsCommand) run(context.Context) error {
	accounts, err := provision.AccountsOf(c.Flags.Prefix)
	if err != nil {
		return cli.Usagef("--prefix: %w", err)
	}
	if c.nodes < 1 || c.nodes > maxNodes {
		return cli.Usagef("--nodes must be a number from 1 to %d, not %d", maxNodes, c.nodes)
	}
	accounts = accounts.For(c.nodes)
	text := provision.ServerLimits(accounts) + accounts.ServerConfig(accounts.ExampleUsers())
	if c.jwt {
		claims, err := accounts.ClaimsJSON()
		if err != nil {
			return err
		}
		text = string(claims)
		remarkLine(c.Env)
	}
	_, err = fmt.Fprint(c.Print.Out, text)

	return err
}
