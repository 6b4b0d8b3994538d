package document

import (
	"strings"

	"github.com/musterfleet/muster/model"
)

// Unknown returns the problem of an unknown word. what is the kind of the word, such as key or
// property. where names its context, such as " of file", or is empty.
func Unknown(pos model.Position, what, word, where string, known []string) model.Problem {
	return model.Problem{Pos: pos, Message: "unknown " + what + " `" + word + "`" + where, Hint: DidYouMean(word, known)}
}

// DidYouMean returns a hint for an unknown word, or an empty text without a similar known word.
func DidYouMean(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return "did you mean `" + near + "`?"
	}

	return ""
}

// Nearest returns the known word with the fewest edits from word. If more than a third of the word
// differs, it returns the only known word that extends it, such as password_file for password, or
// an empty text.
func Nearest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	if best == "" && word != "" {
		best = onlyWith(word, known)
	}

	return best
}

// onlyWith returns the only known word that extends a word, such as password_file or sign-key. It
// is empty for none or several.
func onlyWith(word string, known []string) (found string) {
	for _, k := range known {
		rest, is := strings.CutPrefix(k, word)
		if !is || !strings.HasPrefix(rest, "_") && !strings.HasPrefix(rest, "-") || k == found {
			continue
		}
		if found != "" {
			return ""
		}
		found = k
	}

	return found
}

// distance is the number of insertions, deletions, replacements and swaps of neighbours that turn a
// into b.
func distance(a, b string) int {
	if max(len(a)-len(b), len(b)-len(a)) > len(a)/3+2 {
		return len(a) + len(b)
	}
	var before []int
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, previous = previous, row
	}

	return previous[len(b)]
}
