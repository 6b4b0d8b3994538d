package fleetcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/web/access"
)

// tokenCommand implements muster fleet token.
type tokenCommand struct {
	*cli.Env
	print.Format
	name, role, file string
}

// tokenDocument is a new token.
type tokenDocument struct {
	Name  string `json:"name"`
	Role  string `json:"role"`
	Token string `json:"token"`
	// Line is the line for the file of tokens.
	Line string `json:"line"`
}

// addToken adds the command to muster fleet.
func addToken(env *cli.Env, parent *fisk.CmdClause) {
	c := &tokenCommand{Env: env}
	cmd := parent.Command("token", "Create a token for the API and dashboard of muster fleet serve")
	cmd.HelpLong("Prints a new token once, and appends its SHA-256 to the file of tokens. A running server reads the file within a second. Delete the line of a token to revoke it.\n\n" +
		"  muster fleet token anna --role operate --file /etc/muster/tokens\n  muster fleet token grafana --file /etc/muster/tokens")
	cmd.Arg("name", "Name of the user").Required().StringVar(&c.name)
	cli.Enum(cmd.Flag("role", "Role of the token: read or operate").Default(access.Read.String()).PlaceHolder("ROLE"), &c.role, access.Read.String(), access.Operate.String())
	cmd.Flag("file", "Append to this file of tokens; created if missing").PlaceHolder("FILE").StringVar(&c.file)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

func (c *tokenCommand) run(context.Context) error {
	role, err := access.ParseRole(c.role)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	token, line, err := access.NewToken(role, c.name)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if c.file != "" {
		before, err := access.AppendLine(c.file, line)
		if err != nil {
			return cli.FileError("file of tokens", c.file, err)
		}
		switch roles := access.RolesOf(before, c.name); len(roles) {
		case 0:
		case 1:
			c.Log.Warn(fmt.Sprintf("%s has another token of %s with role %s, which remains valid: delete its line, or choose another name", c.file, c.name, roles[0]))
		default:
			c.Log.Warn(fmt.Sprintf("%s has %d other tokens of %s with role %s, which remain valid: delete their lines, or choose another name", c.file, len(roles), c.name, strings.Join(slices.Compact(slices.Sorted(slices.Values(roles))), " and ")))
		}
	}

	return c.Print.Result(c.Format, tokenDocument{c.name, c.role, token, line[:len(line)-1]}, func() {
		c.Print.Printf("%s\n", token)
		if c.file == "" {
			c.Print.Remark("line for the file of tokens: %s", line[:len(line)-1])
		}
	})
}
