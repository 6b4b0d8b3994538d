package main

import (
	_ "embed"
	"fmt"
	"io"

	"github.com/musterfleet/muster/cmd/muster/cli"
)

// The flags that print the completion script of a shell, and are the script's own here: those of fisk complete
// flags and commands only.
const (
	scriptBash = "--completion-script-bash"
	scriptZsh  = "--completion-script-zsh"
	scriptFish = "--completion-script-fish"
)

//go:embed complete.bash
var bashScript string

//go:embed complete.fish
var fishScript string

//go:embed complete.zsh
var zshScript string

// completionDescribed is the request of shells that show what each word is for: that of fisk, and what is behind
// it, with this as its first word.
const completionDescribed = "--completion-described"

// described returns the command line in the words of fisk. It reports whether words are to be described.
func described(args []string) ([]string, bool) {
	if len(args) == 0 || args[0] != completionDescribed {
		return args, false
	}

	return append([]string{"--" + cli.CompletionFlag}, args[1:]...), true
}

// printScript prints the completion script of a shell. It reports false for any other command line.
func printScript(w io.Writer, args []string) (printed bool, err error) {
	if len(args) != 1 {
		return false, nil
	}
	script := map[string]string{scriptBash: bashScript, scriptZsh: zshScript, scriptFish: fishScript}[args[0]]
	if script == "" {
		return false, nil
	}
	_, err = fmt.Fprint(w, script)

	return true, err
}
