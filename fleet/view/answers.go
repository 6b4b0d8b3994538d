package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// Answer is the final answer of one node to a request.
type Answer struct {
	Node    string        `json:"node"`
	Outcome model.Outcome `json:"outcome"`
	// ExitCode, Stdout and Stderr are the results of a command; ExitCode is nil if no command ran.
	ExitCode *int   `json:"exit_code,omitempty"`
	Stdout   string `json:"stdout,omitempty"`
	Stderr   string `json:"stderr,omitempty"`
	// Text summarizes the result.
	Text string `json:"text"`
	// Time is when the server stored the answer. Duration is how long the change took, in nanoseconds.
	Time     time.Time     `json:"time"`
	Duration time.Duration `json:"duration,omitempty"`
	// Runs are the results of a run request, by manifest.
	Runs []model.RequestedRun `json:"runs,omitempty"`
}

// Answers are the answers of nodes to a request.
type Answers struct {
	Answers []Answer `json:"answers"`
	// Incomplete is the reason why some answers are missing, empty if all were read.
	Incomplete string `json:"incomplete,omitempty"`
}

// EqualAnswers are the nodes with equal answers.
type EqualAnswers struct {
	Answer
	Nodes []Answer
}

// Equal groups answers with the same outcome, exit code, text and output. It sorts failures before others, larger
// groups before smaller ones, and the nodes of a group by name.
func (a Answers) Equal() []EqualAnswers {
	var out []EqualAnswers
	positions := map[string]int{}
	for _, answer := range a.Answers {
		code, _ := json.Marshal(answer.ExitCode) // an integer or null
		key := strings.Join([]string{string(answer.Outcome), string(code), answer.Text, answer.Stdout, answer.Stderr}, "\x00")
		i, known := positions[key]
		if !known {
			i = len(out)
			positions[key] = i
			out = append(out, EqualAnswers{Answer: answer})
		}
		out[i].Nodes = append(out[i].Nodes, answer)
	}
	for _, g := range out {
		slices.SortFunc(g.Nodes, func(a, b Answer) int { return cmp.Compare(a.Node, b.Node) })
	}
	slices.SortStableFunc(out, func(a, b EqualAnswers) int {
		return cmp.Or(a.rank()-b.rank(), len(b.Nodes)-len(a.Nodes))
	})

	return out
}

// rank returns 0 for failures, 1 for others.
func (a EqualAnswers) rank() int {
	if a.Outcome.IsFailure() || a.Outcome == model.OutcomeUnmet {
		return 0
	}

	return 1
}
