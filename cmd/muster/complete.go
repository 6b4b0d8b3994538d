package main

import (
	_ "embed"
	"fmt"
	"io"
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
