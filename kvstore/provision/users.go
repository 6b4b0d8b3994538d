package provision

import (
	"errors"
	"fmt"
	"strings"
)

// NamedUser is a node or an operator, with its groups.
type NamedUser struct {
	Name   string
	Groups []string
	// Position is FILE:LINE, empty for the command line.
	Position string
}

// Wrong prefixes an error with the position of the user.
func (u NamedUser) Wrong(err error) error {
	if u.Position == "" {
		return err
	}

	return fmt.Errorf("%s: %w", u.Position, err)
}

// where describes the position of the user for a message.
func (u NamedUser) where() string {
	if u.Position == "" {
		return "on the command line"
	}

	return "at " + u.Position
}

// ParseUsers parses the text of a file of users: lines with a name and, optionally, comma-separated groups. The error names
// each invalid line.
func ParseUsers(file, text string) (out []NamedUser, err error) {
	at := 0
	for line := range strings.Lines(text) {
		at++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		u := NamedUser{Name: words[0], Position: fmt.Sprintf("%s:%d", file, at)}
		switch {
		case len(words) > 2:
			err = errors.Join(err, u.Wrong(fmt.Errorf("%q follows the groups: write a name, then its groups separated by commas", words[2])))
		case len(words) == 2:
			u.Groups = strings.Split(words[1], ",")
		}
		out = append(out, u)
	}

	return out, err
}

// CheckNames returns an error for each name that is given twice.
func CheckNames(all []NamedUser) (err error) {
	known := map[string]NamedUser{}
	for _, u := range all {
		if other, is := known[u.Name]; is {
			err = errors.Join(err, u.Wrong(fmt.Errorf("%s is given twice, first %s", u.Name, other.where())))
		}
		known[u.Name] = u
	}

	return err
}
