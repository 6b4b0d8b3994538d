package command

import (
	"regexp"
	"slices"
	"strings"
)

// operators are the characters of the words that ShellSyntax finds.
const operators = "|&;<>"

// operator is a word that joins or redirects commands in a shell, or that a shell would
// end within.
var operator = regexp.MustCompile(`^(.*\|.*|&|&&|.*;|<|>>?|[0-9]*>>?(&[0-9]|/.*))$`)

// variable is the beginning of what a shell expands.
var variable = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*|\()`)

// ShellSyntax returns the first part of a command line that a shell would act on,
// and that Split makes an argument: an operator that is a word without quotes, such a
// word with a pipe in it or a semicolon at its end, or $NAME, $( or a backtick outside
// single quotes. Those of inserted parts do not count. It is empty where there is none.
func ShellSyntax(line string, inserted ...[2]int) string {
	if !strings.ContainsAny(line, operators+"$`") {
		return ""
	}
	line = ownText(line, inserted)
	quote, word, isQuoted := byte(0), 0, false
	for i := 0; i <= len(line); i++ {
		switch {
		case i == len(line) || quote == 0 && strings.IndexByte(" \t\n", line[i]) >= 0:
			if !isQuoted && operator.MatchString(line[word:i]) {
				return line[word:i]
			}
			word, isQuoted = i+1, false
		case line[i] == quote:
			quote = 0
		case quote == '\'':
		case line[i] == '\\':
			i, isQuoted = min(i+1, len(line)-1), true
		case line[i] == '`':
			return "`"
		case line[i] == '$' && variable.MatchString(line[i:]):
			return variable.FindString(line[i:])
		case quote == 0 && slices.Contains([]byte(`'"`), line[i]):
			quote, isQuoted = line[i], true
		}
	}

	return ""
}
