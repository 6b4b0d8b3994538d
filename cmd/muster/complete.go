package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

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

// completing returns a command line in the words of fisk, where a shell completes it. What the last word begins
// with is left out, unless it is a flag: shells choose by rules of their own, or of their users. It reports
// whether words are to be described.
func completing(args []string) (words []string, isDescribed bool) {
	if len(args) == 0 || args[0] != completionDescribed && args[0] != "--"+cli.CompletionFlag {
		return args, false
	}
	words = append([]string{"--" + cli.CompletionFlag}, args[1:]...)
	if last := len(words) - 1; last > 0 && !strings.HasPrefix(words[last], "-") {
		words[last] = ""
	}

	return words, args[0] == completionDescribed
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
