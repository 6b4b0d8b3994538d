package document

import (
	"slices"

	"github.com/musterfleet/muster/model"
)

// LaterHint is the remedy for what this version does not have yet.
const LaterHint = "leave it out until a later version brings it"

// later are words of the formats that this version does not have yet.
var later = [...]string{
	"property limit",
	"key rollout",
}

// Unknown is the problem of a word that is none of those known: of a what, such
// as key or property, in a place that where names, " of file", or nothing.
func Unknown(pos model.Position, what, word, where string, known []string) model.Problem {
	named := what + " `" + word + "`" + where
	if slices.Contains(later[:], what+" "+word) {
		return model.Problem{Pos: pos, Message: named + " is not in this version yet", Hint: LaterHint}
	}

	return model.Problem{Pos: pos, Message: "unknown " + named, Hint: DidYouMean(word, known)}
}
