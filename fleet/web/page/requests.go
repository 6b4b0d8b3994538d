package page

import (
	"strconv"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet/view"
)

// maxAnswers is the maximum number of answers on a page.
const maxAnswers = 500

// RequestData is the content of the page of a request.
type RequestData struct {
	Detail  view.RequestDetail
	Answers view.Answers
	// Err is the reason why the answers cannot be read, empty if they were.
	Err string
}

// answerGroup are nodes with equal answers.
type answerGroup struct {
	view.EqualAnswers
	// stdout and stderr are cut to a limit. shown are the nodes with a row.
	stdout, stderr string
	shown          []view.Answer
}

// groups returns groups of equal answers, with at most maxAnswers rows in all groups together. Each group has at
// least one row.
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

// more returns the number of answers without a row.
func (d RequestData) more() int { return max(len(d.Answers.Answers)-maxAnswers, 0) }

// exitCodeText returns an exit code, empty if no command ran.
func exitCodeText(code *int) string {
	if code == nil {
		return ""
	}

	return strconv.Itoa(*code)
}

// answersURL returns the URL of the answers to a request in the API.
func answersURL(id string, run bool, document string) templ.SafeURL {
	return at(ofRun(run), "api", "v1", "requests", id, document)
}
