package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/choria-io/fisk"
	"golang.org/x/sys/unix"

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
		before, err := appendLine(c.file, line)
		if err != nil {
			return cli.FileError("file of tokens", c.file, err)
		}
		switch roles := rolesOf(before, c.name); len(roles) {
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

// rolesOf returns the roles of a name's tokens in a file of tokens.
func rolesOf(file, name string) []string {
	var out []string
	for line := range strings.Lines(file) {
		if words := strings.Fields(line); len(words) == 3 && words[1] == name {
			out = append(out, words[0])
		}
	}

	return out
}

// maxTokens is the maximum number of bytes to read from a file of tokens.
const maxTokens = 1 << 20

// appendLine appends a line to a file that only its owner may read. It creates a missing file. It returns the
// previous content.
func appendLine(path, line string) (before string, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s has mode %04o, so others may read it: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTokens))
	if err != nil {
		return "", err
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		line = "\n" + line
	}
	_, err = f.WriteString(line)

	return string(text), errors.Join(err, f.Sync())
}
