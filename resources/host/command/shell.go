package command

import (
	"bytes"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// operators are the characters of operator words that ShellSyntax finds.
const operators = "|&;<>"

// operator matches a word that joins or redirects commands in a shell, or that ends a command.
var operator = regexp.MustCompile(`^(.*\|.*|&|&&|.*;|<|>>?|[0-9]*>>?(&[0-9]|/.*))$`)

// variable matches the start of an expansion, which double quotes do not prevent.
var variable = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*|[({])`)

// expansion matches the parts of an unquoted word that a shell expands: a home directory, a
// file name pattern, or a list in braces.
var expansion = regexp.MustCompile(`^~[A-Za-z0-9_.-]*(/|$)|[*?]|\[[^\]]+\]|\{[^{}]*(,|\.\.)[^{}]*\}`)

// expandable lists the first characters of expansions.
const expandable = "~*?[{"

// globs are the first characters of file name patterns.
var globs = []byte("*?[")

// quoted replaces a quoted character.
const quoted = 'q'

// ShellSyntax returns the first part of a command line that a shell would interpret but Split returns as
// text, or the empty string:
//   - an operator that is a word without quotes, a word with a pipe in it, or a word that
//     ends in a semicolon
//   - $NAME, ${, $( or a backtick outside single quotes
//   - ~, *, ?, [a-z] or {a,b} outside quotes, except in URLs, in addresses such as [::1], and
//     patterns in options such as --exclude=*.log
//
// It ignores inserted parts.
func ShellSyntax(line string, inserted ...[2]int) string {
	if !strings.ContainsAny(line, operators+expandable+"$`") {
		return ""
	}
	line = ownText(line, inserted)
	quote, start, isQuoted := byte(0), 0, false
	var word []byte
	for i := 0; i <= len(line); i++ {
		switch {
		case i == len(line) || quote == 0 && strings.IndexByte(" \t\n", line[i]) >= 0:
			if found := wordSyntax(line[start:i], word, isQuoted); found != "" {
				return found
			}
			start, word, isQuoted = i+1, word[:0], false
		case line[i] == quote:
			quote = 0
		case quote == '\'':
			word = append(word, quoted)
		case line[i] == '\\':
			i, isQuoted = min(i+1, len(line)-1), true
			word = append(word, quoted)
		case line[i] == '`':
			return "`"
		case line[i] == '$' && variable.MatchString(line[i:]):
			return variable.FindString(line[i:])
		case quote == 0 && slices.Contains([]byte(`'"`), line[i]):
			quote, isQuoted = line[i], true
		case quote == 0:
			word = append(word, line[i])
		default:
			word = append(word, quoted)
		}
	}

	return ""
}

// wordSyntax returns the part of a word that a shell would act on. masked is the word with its
// quoted characters replaced.
func wordSyntax(word string, masked []byte, isQuoted bool) string {
	if !isQuoted && operator.MatchString(word) {
		return word
	}
	if strings.Contains(word, "://") {
		return ""
	}

	// A shell does not expand the pattern of an option: no file has such a name.
	isOption := strings.HasPrefix(word, "-")
	for _, found := range expansion.FindAll(masked, -1) {
		if isPattern := bytes.IndexByte(globs, found[0]) >= 0; !isAddress(found) && !(isPattern && isOption) {
			return strings.ReplaceAll(string(found), opaque, "…")
		}
	}

	return ""
}

// isAddress reports whether a part of a word is an IPv6 address in brackets.
func isAddress(part []byte) bool {
	text, isOpen := strings.CutPrefix(string(part), "[")
	text, isClosed := strings.CutSuffix(text, "]")
	address, err := netip.ParseAddr(text)

	return isOpen && isClosed && err == nil && address.Is6()
}
