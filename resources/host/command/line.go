package command

import (
	"errors"
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

// ownText returns a command line with opaque inserted parts.
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
