package provisioncmd

import (
	"context"
	"errors"
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
	name                              string
	groups, nodes                     []string
	viewer, operator, oneAccount, jwt bool
	serve, actions                    bool
	requests                          []string
}

func addPermissions(env *cli.Env, parent *fisk.CmdClause) {
	c := &permissionsCommand{Env: env}
	cmd := parent.Command("permissions", "Print the NATS permissions of a node, or of an operator who is no administrator")
	cmd.HelpLong("Needs no connection. The block belongs to a user in the configuration of nats-server, in the account NODES or OPERATORS that muster fleet accounts prints, with --requests in REQUESTERS; --jwt prints the claims of a user JWT. A node that changes its groups needs new permissions. An operator connects with --inbox-prefix _INBOX_NAME.\n\n" +
		"  muster fleet permissions web01 --groups web,linux\n  muster fleet permissions alice --viewer\n  muster fleet permissions bob --operator --groups web --nodes db01\n  muster fleet permissions wall --serve --actions --requests run,preview")
	cmd.Arg("name", "Id of the node, or name of the operator").Required().StringVar(&c.name)
	cmd.Flag("groups", "Groups of the node, comma separated, all is always included; or of the operator").PlaceHolder("GROUP,…").StringsVar(&c.groups)
	cmd.Flag("viewer", "An operator who reads assignments, nodes and reports").UnNegatableBoolVar(&c.viewer)
	cmd.Flag("operator", "An operator who assigns to, and queues requests for, --groups and --nodes").UnNegatableBoolVar(&c.operator)
	cmd.Flag("serve", "What muster fleet serve needs: it reads all but bundles").UnNegatableBoolVar(&c.serve)
	cmd.Flag("actions", "With --serve: it also pauses and resumes nodes and groups").UnNegatableBoolVar(&c.actions)
	cmd.Flag("requests", "With --serve: it also has all nodes run what is assigned (run), and preview manifests, of which guards run there (preview)").PlaceHolder("VERB,…").StringsVar(&c.requests)
	cmd.Flag("nodes", "Nodes of the operator, comma separated").PlaceHolder("NODE,…").StringsVar(&c.nodes)
	cmd.Flag("one-account", "The node is a user of the account with the streams, where nodes must trust each other").UnNegatableBoolVar(&c.oneAccount)
	cmd.Flag("jwt", "Print the claims of a user JWT").UnNegatableBoolVar(&c.jwt)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *permissionsCommand) run(context.Context) error {
	allowed, err := c.allowed()
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if c.IsDocument() {
		return c.Print.Document(allowed, c.YAML)
	}
	text := allowed.ServerConfig()
	if len(c.requests) > 0 {
		text = "# for a user of the account REQUESTERS\n" + text
	}
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

// allowed returns the permissions of the role that the flags name.
func (c *permissionsCommand) allowed() (permissions.Permissions, error) {
	groups, nodes := split(c.groups), split(c.nodes)
	switch {
	case c.serve && (c.viewer || c.operator || len(groups)+len(nodes) > 0):
		return permissions.Permissions{}, errors.New("--serve is a role of its own, for all groups and nodes: leave out --viewer, --operator, --groups and --nodes")
	case (c.actions || len(c.requests) > 0) && !c.serve:
		return permissions.Permissions{}, errors.New("--actions and --requests are those of a dashboard, see --serve")
	case c.viewer && (c.operator || len(groups)+len(nodes) > 0):
		return permissions.Permissions{}, errors.New("a viewer sees all groups and nodes: leave out --operator, --groups and --nodes")
	case (c.viewer || c.operator || c.serve) && c.oneAccount:
		return permissions.Permissions{}, errors.New("operators who are no administrators need an account of their own: leave out --one-account")
	case len(nodes) > 0 && !c.operator:
		return permissions.Permissions{}, errors.New("--nodes are those of an operator, see --operator")
	case c.operator && len(groups)+len(nodes) == 0:
		return permissions.Permissions{}, errors.New("an operator assigns to groups or nodes: give --groups GROUP,… or --nodes NODE,… (--viewer only reads)")
	case c.viewer:
		return permissions.Viewer(c.Flags.Prefix, c.name)
	case c.serve:
		return permissions.Dashboard(c.Flags.Prefix, c.name, permissions.Serving{Pauses: c.actions, Requests: split(c.requests)})
	case c.operator:
		return permissions.Operator(c.Flags.Prefix, c.name, groups, nodes)
	case c.oneAccount:
		return permissions.InOneAccount(c.Flags.Prefix, c.name, groups)
	default:
		return permissions.Of(c.Flags.Prefix, c.name, groups)
	}
}

// split returns the words of comma separated lists.
func split(lists []string) []string {
	var words []string
	for _, list := range lists {
		words = append(words, strings.Split(list, ",")...)
	}

	return words
}
