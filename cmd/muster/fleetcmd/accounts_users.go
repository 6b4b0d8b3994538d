package fleetcmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/cli"
)

// natsUser is a node or an operator, with its groups.
type natsUser struct {
	name   string
	groups []string
	// position is FILE:LINE, empty for the command line.
	position string
}

// wrong prefixes an error with the position of the user.
func (u natsUser) wrong(err error) error {
	if u.position == "" {
		return err
	}

	return fmt.Errorf("%s: %w", u.position, err)
}

// users returns the users from the command line and from the file. A name given twice is an error.
func (c *permissionsCommand) users() ([]natsUser, error) {
	var all []natsUser
	for _, name := range c.names {
		all = append(all, natsUser{name: name})
	}
	if c.hasFrom {
		read, err := c.read()
		if err != nil {
			return nil, err
		}
		all = append(all, read...)
	}
	if len(all) == 0 {
		return nil, cli.Usagef("no name: give names, or --from FILE with one name per line")
	}
	known, wrong := map[string]natsUser{}, []error{}
	for i := range all {
		if c.isOfNode() {
			all[i].name = cli.NodeID(all[i].name)
		}
		u := all[i]
		if other, is := known[u.name]; is {
			wrong = append(wrong, u.wrong(fmt.Errorf("%s is given twice, first %s", u.name, other.where())))
		}
		known[u.name] = u
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, cli.Usagef("%w", err)
	}

	return all, nil
}

// where describes the position of the user for a message.
func (u natsUser) where() string {
	if u.position == "" {
		return "on the command line"
	}

	return "at " + u.position
}

// read reads the users from the file.
func (c *permissionsCommand) read() ([]natsUser, error) {
	if c.from == "" { // fisk turns a lone dash into an empty value
		return readUsers(c.Stdin, "standard input")
	}
	f, err := os.Open(c.from)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	defer func() { _ = f.Close() }()

	return readUsers(f, c.from)
}

// readUsers reads lines with a name and, optionally, comma-separated groups.
func readUsers(from io.Reader, name string) ([]natsUser, error) {
	var out []natsUser
	var wrong []error
	lines := bufio.NewScanner(from)
	for at := 1; lines.Scan(); at++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		u := natsUser{name: words[0], position: fmt.Sprintf("%s:%d", name, at)}
		switch {
		case len(words) > 2:
			wrong = append(wrong, u.wrong(fmt.Errorf("%q follows the groups: write a name, then its groups separated by commas", words[2])))
		case len(words) == 2:
			u.groups = strings.Split(words[1], ",")
		}
		out = append(out, u)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--from: read %s: %w", name, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, cli.Usagef("%w", err)
	}

	return out, nil
}
