package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
)

// The flags that print the completion script of a shell. That of zsh is one of fisk.
const (
	scriptBash = "--completion-script-bash"
	scriptZsh  = "--completion-script-zsh"
	scriptFish = "--completion-script-fish"
)

//go:embed complete.bash
var bashScript string

//go:embed complete.fish
var fishScript string

// zshNames completes with the names that muster knows: the script of fisk asks for flags and
// commands only, and for those of each command by itself.
const zshNames = `_muster_names() {
    local -a names
    names=("${(@f)$(muster --` + cli.CompletionFlag + ` "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    names=("${(@)names:#}")
    (( ${#names} )) && compadd -a names
}

`

// zshFlags is where the script of fisk completes flags, zshValue what is tried before: the value behind a
// flag, in one word.
const (
	zshFlags = `    if [[ "$cur" == -* ]]; then`
	zshValue = `    if [[ "$cur" == --*=* ]]; then
        _muster_names && return 0
    fi
`
)

// zshPlaces are the places in the script of fisk where a value is described, each with the name
// of what is tried before.
var zshPlaces = [...]string{
	`_message -r "${fplaceholders[j]}"`,
	`_message -r "${anames[arg_idx]}:`,
}

// zshTemplate is the completion script of zsh.
func zshTemplate() string {
	script := strings.Replace(fisk.ZshCompletionTemplate, "_{{.App.Name}}() {\n", zshNames+"_{{.App.Name}}() {\n", 1)
	script = strings.Replace(script, zshFlags, zshValue+zshFlags, 1)
	for _, place := range zshPlaces {
		script = strings.Replace(script, place, "_muster_names || "+place, 1)
	}

	return script
}

// printScript prints the completion script of a shell that fisk has none for, or less of. It
// reports false for any other command line.
func printScript(w io.Writer, app *fisk.Application, line line) (printed bool, err error) {
	switch {
	case len(line.args) != 1:
		return false, nil
	case line.args[0] == scriptBash:
		_, err = fmt.Fprint(w, bashScript)
		return true, err
	case line.args[0] == scriptFish:
		_, err = fmt.Fprint(w, fishScript)
		return true, err
	case line.args[0] == scriptZsh:
		app.UsageWriter(w)
		return true, app.UsageForContextWithTemplate(line.parsed, 2, zshTemplate())
	default:
		return false, nil
	}
}

// completer completes flags. fisk knows those of the innermost command only, and no value behind "=".
type completer struct {
	env  *cli.Env
	app  *fisk.Application
	line line
}

// complete prints what completes the last word, and ends the parser, where that is a flag or its value; else
// fisk does.
func (c completer) complete(parsed *fisk.ParseContext) error {
	last := len(c.line.given) - 1
	if !c.env.Given(cli.CompletionFlag) || last < 1 || slices.Contains(c.line.given[:last], "--") {
		return nil
	}
	word, before := c.line.given[last], c.line.given[last-1]
	name, value, isValue := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	switch {
	case strings.HasPrefix(word, "--") && isValue:
		found, _ := c.values(parsed, name, value)
		for i := range found {
			found[i] = "--" + name + "=" + found[i]
		}
		return c.print(found)
	case strings.HasPrefix(word, "--"):
		return c.print(c.names(parsed))
	case strings.HasPrefix(word, "-") || !strings.HasPrefix(before, "--"):
		return nil
	}
	name = strings.TrimPrefix(before, "--")
	if flag, known := c.line.flag(name); known && flag.IsBoolFlag() {
		return c.print(c.owners(parsed)[0].CmdCompletion(parsed))
	}
	if found, is := c.values(parsed, name, word); is {
		return c.print(found)
	}

	return nil
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

// values returns the values that a flag may have; it reports false where no command has the flag.
func (c completer) values(parsed *fisk.ParseContext, name, value string) (found []string, known bool) {
	for _, owner := range c.owners(parsed) {
		if found, known, _ = owner.FlagCompletion(name, value); known {
			return found, true
		}
	}

	return nil, false
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

// print prints what completes a word, one a line, and ends the parser.
func (c completer) print(found []string) error {
	if _, err := fmt.Fprint(c.env.Print.Out, strings.Join(found, "\n")); err != nil {
		return err
	}
	panic(terminated{cli.ExitOK})
}
