package fleetcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// factsCommand implements muster fleet facts.
type factsCommand struct {
	*cli.Env
	print.Format
	nodeFlags
	query string
}

// addFacts adds muster fleet facts.
func addFacts(env *cli.Env, parent *fisk.CmdClause) {
	c := &factsCommand{Env: env}
	cmd := parent.Command("facts", "Show the facts of a node")
	cmd.HelpLong("Shows the facts that the agent stored last, even if the node is unreachable.\n\n  muster fleet facts web01\n  muster fleet facts web01 host.info.platform\n  muster fleet facts web01 host.info --yaml")
	cmd.Arg("node", "Name of the node, unless --node is given").HintAction(env.CompleteNodes).StringVar(&c.node)
	cmd.Arg("query", "GJSON path of the value to show").StringVar(&c.query)
	cli.NodeVar(cmd.Flag("node", "Name of the node").PlaceHolder("NODE").HintAction(env.CompleteNodes), &c.flagged)
	cmd.Flag("json", "Print as JSON (default, except for a single text)").UnNegatableBoolVar(&c.JSON)
	cmd.Flag("yaml", "Print as YAML").UnNegatableBoolVar(&c.YAML)
	cmd.Action(env.Action(c.run))
}

func (c *factsCommand) run(ctx context.Context) error {
	if c.Given("node") && c.query == "" {
		c.node, c.query = "", c.node
	}
	if err := c.check(); err != nil {
		return err
	}
	store, err := Open(ctx, c.Env, NeedNodes)
	if err != nil {
		return err
	}
	bucket := kvstore.NewNodes(store.KV)
	text, err := bucket.FactsDocument(ctx, c.node)
	if !errors.Is(err, model.ErrNotFound) {
		if err != nil {
			return err
		}
		return c.Print.Query(c.Format, text, c.query, "fact")
	}
	if _, err := bucket.State(ctx, c.node); errors.Is(err, model.ErrNotFound) {
		return store.NoSuchNode(ctx, c.node)
	}

	return fmt.Errorf("node %s has stored no facts; its agent stores them when it starts (see %s)", c.node, store.KV.Names.Run("fleet describe "+c.node))
}

// nodeFlags name one node: an argument, or the flag --node.
type nodeFlags struct{ node, flagged string }

// check sets the node, and checks its name.
func (n *nodeFlags) check() error {
	if n.node != "" && n.flagged != "" {
		return cli.Usagef("name one node: NODE or --node NODE")
	}
	switch n.node = cli.NodeID(n.node + n.flagged); {
	case n.node == "":
		return cli.Usagef("no node: name one, as muster fleet nodes lists them")
	case !model.IsToken(n.node):
		return cli.Usagef("node %q: write one word of letters, digits, - and _", n.node)
	default:
		return nil
	}
}
