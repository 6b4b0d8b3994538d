package command

import (
	"bytes"
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"
)

// LineError is the reason why a command line cannot be split, with the remedy. The text follows the name of
// the command line.
type LineError struct{ Reason, Hint string }

// Error returns the reason.
func (e LineError) Error() string { return e.Reason }

// Hint returns the remedy of an error of Split.
func Hint(err error) string {
	var line LineError
	_ = errors.As(err, &line)

	return line.Hint
}

// Errors of Split other than quoting errors.
var (
	// ErrNoProgram means that a command line has no words or an empty first word.
	ErrNoProgram = LineError{"names no program", "write the program first"}
	// ErrNUL means that a command line contains a NUL byte.
	ErrNUL = LineError{"must not contain a NUL byte", ""}
)

// AffectsSplit reports whether a value, inserted into a command line, may change how it is split or how
// ShellSyntax reads it.
func AffectsSplit(value string) bool {
	return value == "" || strings.ContainsAny(value, " \t\n'\"\\$`"+operators+expandable)
}

// opaque replaces the inserted parts of a command line while it is split.
const opaque = "\x00"

// Split splits a command line by the quoting rules of the shell, without its other features. Each inserted
// part, given by its offsets in order, belongs to one word, whatever it contains. The error is a LineError.
func Split(line string, inserted ...[2]int) ([]string, error) {
	if strings.Contains(line, opaque) {
		return nil, ErrNUL
	}
	words, err := shellquote.Split(ownText(line, inserted))
	if err != nil {
		return nil, LineError{"cannot be split into words: " + err.Error(), "close the quote"}
	}
	for i, word := range words {
		var whole strings.Builder
		for piece := range strings.SplitAfterSeq(word, opaque) {
			own, isCut := strings.CutSuffix(piece, opaque)
			if whole.WriteString(own); isCut {
				whole.WriteString(line[inserted[0][0]:inserted[0][1]])
				inserted = inserted[1:]
			}
		}
		words[i] = whole.String()
	}
	if len(words) == 0 || words[0] == "" {
		return nil, ErrNoProgram
	}

	return words, nil
}

func ownText(line string, inserted [][2]int) string {
	var own strings.Builder
	at := 0
	for _, part := range inserted {
		own.WriteString(line[at:part[0]] + opaque)
		at = part[1]
	}

	return own.String() + line[at:]
}

// Join returns a command line that Split splits into words.
func Join(words []string) string { return shellquote.Join(words...) }

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

var globs = []byte("*?[")

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

func isAddress(part []byte) bool {
	text, isOpen := strings.CutPrefix(string(part), "[")
	text, isClosed := strings.CutSuffix(text, "]")
	address, err := netip.ParseAddr(text)

	return isOpen && isClosed && err == nil && address.Is6()
}
