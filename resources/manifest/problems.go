package manifest

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// Report makes the report of problems: in the order of the document, each
// once (a mistake in defaults is one, however many resources have them), and
// none longer than a reader can take in.
func tidyProblems(problems model.Problems) model.Problems {
	type place struct {
		pos     model.Position
		message string
	}
	seen := make(map[place]bool, len(problems))
	out := slices.DeleteFunc(problems.Sorted(), func(p model.Problem) bool {
		key := place{p.Pos, p.Message}
		twice := seen[key] && !p.Pos.IsZero()
		seen[key] = true
		return twice
	})
	for i := range out {
		out[i].Message, out[i].Hint = clip(out[i].Message), clip(out[i].Hint)
	}

	out = model.Joined(out)
	for i := range out {
		if out[i].More > 0 {
			out[i].Message, out[i].Hint = fmt.Sprintf("%d more problems", out[i].More), ""
		}
	}

	return out
}

// longestMessage is in bytes.
const longestMessage = 400

// clip takes the middle out of a message that quotes a long text, and puts one
// of several lines on one.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) <= longestMessage {
		return s
	}
	head, tail := longestMessage/2, len(s)-longestMessage/2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}

	return s[:head] + " … " + s[tail:]
}
