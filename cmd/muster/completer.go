package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
)

// completer completes the last word of a command line. fisk would know flags of the innermost command only, and
// no value behind "=".
type completer struct {
	env  *cli.Env
	app  *fisk.Application
	line line
	// described has the purpose of each word behind a tab.
	described bool
}

// complete prints what completes the last word, and ends the parser. That fails where the word is a name and
// none is known: no file is one.
func (c completer) complete(parsed *fisk.ParseContext) error {
	if !c.env.Given(cli.CompletionFlag) {
		return nil
	}
	c.env.StartCompletion()
	found := c.found(parsed)
	if len(found) == 0 && c.env.NamesAsked() {
		panic(terminated{cli.ExitFailed})
	}
	if err := c.print(found); err != nil {
		return err
	}
	panic(terminated{cli.ExitOK})
}

// found returns what completes the last word; or all that may be in its place.
func (c completer) found(parsed *fisk.ParseContext) []string {
	last := len(c.line.given) - 1
	word, before := c.line.given[last], c.line.given[max(0, last-1)]
	name, value, isValue := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	switch {
	case last == 0 || slices.Contains(c.line.given[:last], "--"):
		return c.arguments(parsed)
	case strings.HasPrefix(word, "--") && isValue:
		found := c.values(parsed, name, value)
		for i := range found {
			found[i] = "--" + name + "=" + found[i]
		}
		return found
	case strings.HasPrefix(word, "--") || word == "-":
		return c.names(parsed)
	case strings.HasPrefix(word, "-"):
		return nil
	}
	if flag, is := c.flag(before); is && !flag.IsBoolFlag() {
		return c.values(parsed, flag.Name, word)
	}

	return c.arguments(parsed)
}

// owner has flags and arguments.
type owner interface {
	CmdCompletion(parsed *fisk.ParseContext) (options []string)
	FlagCompletion(name, value string) (options []string, isFlag, isValue bool)
}

// owners returns the commands of the line, the innermost first, and the program.
func (c completer) owners(parsed *fisk.ParseContext) []owner {
	all := []owner{c.app}
	for _, e := range parsed.Elements {
		if cmd, is := e.Clause.(*fisk.CmdClause); is {
			all = append(all, cmd)
		}
	}
	slices.Reverse(all)

	return all
}

// flag returns the flag that a word is, by its long or short name.
func (c completer) flag(word string) (*fisk.FlagModel, bool) {
	if name, isLong := strings.CutPrefix(word, "--"); isLong {
		return c.line.flag(name)
	}
	i := slices.IndexFunc(c.line.flags, func(f *fisk.FlagModel) bool { return f.Short != 0 && word == "-"+string(f.Short) })
	if i < 0 {
		return nil, false
	}

	return c.line.flags[i], true
}

// arguments returns the commands and arguments that may follow.
func (c completer) arguments(parsed *fisk.ParseContext) []string {
	return c.owners(parsed)[0].CmdCompletion(parsed)
}

// values returns the values that a flag may have.
func (c completer) values(parsed *fisk.ParseContext, name, value string) []string {
	for _, owner := range c.owners(parsed) {
		if found, known, _ := owner.FlagCompletion(name, value); known {
			return found
		}
	}

	return nil
}

// names returns the flags of all commands of the line.
func (c completer) names(parsed *fisk.ParseContext) []string {
	var all []string
	for _, owner := range c.owners(parsed) {
		// No flag has this name, so these are all.
		names, _, _ := owner.FlagCompletion("", "")
		all = append(all, names...)
	}

	return all
}

// print prints what completes a word, each once and one a line.
func (c completer) print(found []string) error {
	var once []string
	purposes := c.purposes()
	printed := map[string]bool{}
	for _, word := range found {
		if !printed[word] {
			printed[word] = true
			once = append(once, word+purposes[word])
		}
	}
	_, err := fmt.Fprint(c.env.Print.Out, strings.Join(once, "\n"))

	return err
}

// purposes returns what stands behind words: what commands and flags are for.
func (c completer) purposes() map[string]string {
	if !c.described {
		return nil
	}
	all := map[string]string{}
	add := func(word, help string) {
		purpose, _, _ := strings.Cut(help, "\n")
		all[word] = "\t" + strings.ReplaceAll(purpose, "\t", " ")
	}
	for _, flag := range c.line.flags {
		add("--"+flag.Name, flag.Help)
	}
	for _, command := range c.line.commands {
		add(command.Name, command.Help)
	}

	return all
}
