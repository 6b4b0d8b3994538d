package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/resources/document"
)

// usage completes an error of the command line: it names the flag and its value, or
// the unknown word with the nearest known one, and the help to read.
func usage(app *fisk.Application, args []string, err error) error {
	parsed, _ := app.ParseContext(args)
	command, flags, commands := app.Name, app.Model().Flags, app.Model().Commands
	for _, e := range parsed.Elements {
		if clause, is := e.Clause.(*fisk.CmdClause); is {
			command, flags, commands = app.Name+" "+clause.FullCommand(), append(flags, clause.Model().Flags...), clause.Model().Commands
		}
	}
	switch {
	case errors.Is(err, fisk.ErrUnknownLongFlag):
		var names []string
		for _, f := range flags {
			names = append(names, "--"+f.Name)
		}
		flag := parsed.Peek().String()
		if (flag == "--check" || flag == "--dry-run") && slices.Contains(names, "--noop") {
			err = fmt.Errorf("unknown flag %s, did you mean --noop?", flag)
			break
		}
		err = fmt.Errorf("unknown flag %s%s", flag, nearest(flag, names))
	case errors.Is(err, fisk.ErrExpectedKnownCommand):
		var names []string
		for _, c := range commands {
			names = append(names, c.Name)
		}
		word := parsed.Peek().Value
		err = fmt.Errorf("unknown command %q of %s%s", word, command, nearest(word, names))
	default:
		err = namedFlag(parsed, err)
	}

	return fmt.Errorf("%w (see %s --help)", err, command)
}

func nearest(word string, known []string) string {
	if near := document.Nearest(word, known); near != "" {
		return ", did you mean " + near + "?"
	}

	return ""
}

// namedFlag adds the flag whose value is the error, with that value.
func namedFlag(parsed *fisk.ParseContext, err error) error {
	at := slices.IndexFunc(parsed.Elements, func(e *fisk.ParseElement) bool {
		flag, is := e.Clause.(*fisk.FlagClause)
		if !is || e.Value == nil {
			return false
		}
		again := flag.Model().Value.Set(*e.Value)
		return again != nil && again.Error() == err.Error()
	})
	if at < 0 {
		return err
	}
	if errors.As(err, new(*strconv.NumError)) {
		err = errors.New("not a whole number of 0 or more")
	}
	e := parsed.Elements[at]

	return fmt.Errorf("--%s %q: %w", e.Clause.(*fisk.FlagClause).Model().Name, *e.Value, err)
}
