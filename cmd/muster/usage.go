package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
)

// line is a command line as far as it can be understood.
type line struct {
	parsed *fisk.ParseContext
	// given are all words, args those before --.
	given, args []string
	// command is the innermost one, with those below it; flags are all that it has.
	command  string
	commands []*fisk.CmdModel
	flags    []*fisk.FlagModel
	// arguments are those that the command takes.
	arguments []*fisk.ArgModel
}

func newLine(app *fisk.Application, args []string) line {
	model := app.Model()
	l := line{given: args, args: args, command: app.Name, flags: model.Flags, commands: model.Commands}
	l.parsed, _ = app.ParseContext(args)
	for _, e := range l.parsed.Elements {
		if clause, is := e.Clause.(*fisk.CmdClause); is {
			model := clause.Model()
			l.command, l.flags, l.commands = app.Name+" "+clause.FullCommand(), append(l.flags, model.Flags...), model.Commands
			l.arguments = model.Args
		}
	}
	if end := slices.Index(args, "--"); end >= 0 {
		l.args = args[:end]
	}

	return l
}

// flag returns a flag by its name.
func (l line) flag(name string) (*fisk.FlagModel, bool) {
	i := slices.IndexFunc(l.flags, func(f *fisk.FlagModel) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}

	return l.flags[i], true
}

// misread reports what fisk takes for something else: a long flag with one dash
// for short ones, and the value of a flag that has none for an argument.
func (l line) misread() error {
	for _, arg := range l.args {
		name, _, valued := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		dashes := len(arg) - len(strings.TrimLeft(arg, "-"))
		flag, known := l.flag(name)
		if !known && dashes == 2 {
			flag, known = l.flag(strings.TrimPrefix(name, "no-"))
		}
		switch {
		case !known:
		case dashes == 1 && len(name) > 1:
			return fmt.Errorf("unknown flag -%s, did you mean --%s?", name, name)
		case dashes == 2 && valued && flag.IsBoolFlag():
			return fmt.Errorf("--%s takes no value: %s", name, arg)
		}
	}

	return l.checkCommand()
}

// explain completes an error of the command line: it names the flag and its value,
// or the unknown word with the nearest known one.
func (l line) explain(err error) error {
	switch {
	case errors.Is(err, fisk.ErrUnknownLongFlag):
		return l.unknownFlag(l.parsed.Peek().String())
	case errors.Is(err, fisk.ErrUnknownShortFlag):
		short := l.parsed.Peek().Value
		at := slices.IndexFunc(l.args, func(arg string) bool {
			return len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.Contains(arg, short)
		})
		if at < 0 {
			return fmt.Errorf("unknown flag -%s%s", short, cmp.Or(l.otherFlag("-"+short), l.commandHint()))
		}
		return l.unknownFlag(l.args[at])
	case errors.Is(err, fisk.ErrExpectedKnownCommand):
		var names []string
		for _, c := range l.commands {
			if !c.Hidden {
				names = append(names, c.Name)
			}
		}
		word := l.parsed.Peek().Value
		return fmt.Errorf("unknown command %q of %s%s", word, l.command, cmp.Or(l.otherCommand(word), cli.DidYouMean(word, names)))
	case errors.Is(err, fisk.ErrUnexpectedArgument):
		return l.unexpected(err)
	}
	if missing := l.missing(err); missing != nil {
		return missing
	}

	return l.namedFlag(err)
}

func (l line) unknownFlag(flag string) error {
	var names []string
	for _, f := range l.flags {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	if hint := l.otherFlag(flag); hint != "" {
		return fmt.Errorf("unknown flag %s%s", flag, hint)
	}
	wanted := strings.TrimLeft(flag, "-")
	if (wanted == "check" || wanted == "dry-run") && slices.Contains(names, "noop") {
		if l.command == "muster fleet push" {
			return fmt.Errorf("unknown flag %s: a push has no dry run, it checks everything first; --noop pushes too, and nodes only report the changes; muster validate FILE only checks", flag)
		}
		return fmt.Errorf("unknown flag %s, did you mean --noop?", flag)
	}

	near := strings.Replace(cli.DidYouMean(wanted, names), " mean ", " mean --", 1)

	return fmt.Errorf("unknown flag %s%s", flag, cmp.Or(near, l.commandHint()))
}

// namedFlag adds the flag, or its variable, whose value is the error, with that value.
func (l line) namedFlag(err error) error {
	isCause := func(flag *fisk.FlagModel, text string) bool {
		again := flag.Value.Set(text)
		return again != nil && again.Error() == err.Error()
	}
	for _, e := range l.parsed.Elements {
		clause, is := e.Clause.(*fisk.FlagClause)
		if is && e.Value != nil && isCause(clause.Model(), *e.Value) {
			return fmt.Errorf("--%s %q: %w", clause.Model().Name, *e.Value, plain(clause.Model(), err))
		}
	}
	for _, e := range l.parsed.Elements {
		clause, is := e.Clause.(*fisk.ArgClause)
		if is && e.Value != nil {
			if again := clause.Model().Value.Set(*e.Value); again != nil && again.Error() == err.Error() {
				return fmt.Errorf("the %s %q: %w", clause.Model().Name, *e.Value, err)
			}
		}
	}
	for _, flag := range l.flags {
		if text, set := os.LookupEnv(flag.Envar); flag.Envar != "" && set && isCause(flag, text) {
			return fmt.Errorf("%s %q: %w", flag.Envar, text, plain(flag, err))
		}
	}

	return err
}

// plain returns the error of a flag's value without the words of Go.
func plain(flag *fisk.FlagModel, err error) error {
	if errors.As(err, new(*strconv.NumError)) {
		return errors.New("not a whole number of 0 or more")
	}
	if v, ok := flag.Value.(fisk.Getter); ok {
		if _, is := v.Get().(time.Duration); is {
			return errors.New("not a duration, such as 30s, 5m or 1h30m")
		}
	}

	return err
}
