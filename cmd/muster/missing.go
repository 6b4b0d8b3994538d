package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/choria-io/fisk"
)

// missing returns the error of what a command line lacks, or has twice, in the words of the other errors; nil for
// any other error.
func (l line) missing(err error) error {
	switch {
	case errors.Is(err, fisk.ErrRequiredArgument):
		i := slices.IndexFunc(l.arguments, func(a *fisk.ArgModel) bool { return quoted(err) == a.Name })
		if i < 0 {
			return nil
		}
		return fmt.Errorf("no %s given: %s", l.arguments[i].Name, unbracketed(inSentence(l.arguments[i].Help)))
	case errors.Is(err, fisk.ErrSubCommandRequired):
		return fmt.Errorf("no command of %s: give one%s", l.command, l.someCommands())
	case errors.Is(err, fisk.ErrFlagCannotRepeat):
		return fmt.Errorf("--%s is given twice: give it once", quoted(err))
	case errors.Is(err, fisk.ErrExpectedFlagArgument):
		return fmt.Errorf("%s needs a value%s", quoted(err), cmp.Or(l.dashed(quoted(err)), l.commandHint()))
	default:
		return nil
	}
}

// dashed returns how to write a value that begins with a dash, as -1 does, where a flag is followed by one; empty
// otherwise.
func (l line) dashed(flag string) string {
	at := slices.Index(l.args, flag)
	if at < 0 || at+1 >= len(l.args) || !strings.HasPrefix(flag, "--") {
		return ""
	}
	value := l.args[at+1]
	if len(value) < 2 || value[0] != '-' || value[1] < '0' || value[1] > '9' {
		return ""
	}

	return fmt.Sprintf("; if that is %s, which begins with a dash, write %s=%s", value, flag, value)
}

// quoted returns what is quoted in an error of fisk.
func quoted(err error) string {
	_, after, _ := strings.Cut(err.Error(), "'")
	word, _, _ := strings.Cut(after, "'")

	return word
}

// unbracketed returns a text without brackets at its end: the next ones follow.
func unbracketed(text string) string {
	before, inside, is := strings.Cut(text, " (")
	if inside, ends := strings.CutSuffix(inside, ")"); is && ends {
		return before + ", " + inside
	}

	return text
}

// inSentence returns a help text as a part of a sentence.
func inSentence(help string) string {
	first, size := utf8.DecodeRuneInString(help)
	second, _ := utf8.DecodeRuneInString(help[size:])
	if !unicode.IsUpper(second) {
		help = string(unicode.ToLower(first)) + help[size:]
	}

	return help
}

// maxCommands is how many commands an error names.
const maxCommands = 20

// someCommands names the commands that are possible, nothing of very many.
func (l line) someCommands() string {
	var names []string
	for _, c := range l.commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	if len(names) > maxCommands {
		return ""
	}

	return " of " + strings.Join(names, ", ")
}
