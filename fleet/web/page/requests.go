package page

import (
	"strconv"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet/view"
)

// maxAnswers is how many answers to a request a page shows.
const maxAnswers = 500

// RequestData is the content of the page of a request.
type RequestData struct {
	Detail  view.RequestDetail
	Answers view.Answers
	// Err is why the answers cannot be read, empty if they were.
	Err string
}

// answerGroup are nodes with equal answers.
type answerGroup struct {
	view.EqualAnswers
	// stdout and stderr are bounded, shown are the nodes that have a row.
	stdout, stderr string
	shown          []view.Answer
}

// groups returns the answers by what they have in common, with at most maxAnswers rows together. Each group
// has a row while there is room for one.
func (d RequestData) groups() []answerGroup {
	equal := d.Answers.Equal()
	equal = equal[:min(len(equal), maxAnswers)]
	room, b := maxAnswers-len(equal), &budget{maxTexts}
	var out []answerGroup
	for _, g := range equal {
		more := min(len(g.Nodes)-1, room)
		room -= more
		out = append(out, answerGroup{g, b.take(g.Stdout), b.take(g.Stderr), g.Nodes[:1+more]})
	}

	return out
}

// more returns how many answers have no row.
func (d RequestData) more() int { return max(len(d.Answers.Answers)-maxAnswers, 0) }

// exitCodeText returns an exit code, empty if no command ran.
func exitCodeText(code *int) string {
	if code == nil {
		return ""
	}

	return strconv.Itoa(*code)
}

// answersURL returns the answers to a request in the API.
func answersURL(id string, run bool, document string) templ.SafeURL {
	return at(ofRun(run), "api", "v1", "requests", id, document)
}
