package manifest

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// tidyProblems sorts problems in the order of the document, removes duplicates (defaults repeat a
// mistake in every resource) and shortens long messages.
func tidyProblems(problems model.Problems) model.Problems {
	type identity struct {
		pos     model.Position
		message string
	}
	seen := make(map[identity]bool, len(problems))
	out := slices.DeleteFunc(problems.Sorted(), func(p model.Problem) bool {
		key := identity{p.Pos, p.Message}
		duplicate := seen[key] && !p.Pos.IsZero()
		seen[key] = true
		return duplicate
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

// longestMessage is the limit of a message in bytes.
const longestMessage = 400

// clip shortens a long message in the middle, and replaces line breaks.
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
