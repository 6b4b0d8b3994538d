package view

import (
	"fmt"

	"github.com/musterfleet/muster/fleet/view/compact"
)

// Request returns a request that nodes answered, with those that did not, and whether it is known.
//
// Nobody wrote down whom it was sent to. So its targets are evaluated as of now, and what is found counts only
// where it is as many nodes as the sender asked.
func (f *Fleet) Request(id string) (RequestDetail, bool) {
	row, answered, is := f.log.Request(id)
	if !is {
		return RequestDetail{}, false
	}
	out := RequestDetail{Progress: f.Progress(), RequestRow: row, Missing: []string{}}
	switch {
	case out.Nodes == 0:
		out.Unknown = "the sender did not say how many nodes it asked, or the agents are of an earlier version"
	case out.Answers >= out.Nodes:
	case out.To == "" && out.On == "":
		out.Unknown = "the sender did not say which nodes it asked, or the target is long"
	case len(answered) < out.Answers:
		out.Unknown = "not all of its answers are kept any more"
	default:
		out.Missing, out.Unknown = unanswered(row, answered, f.nodes.ReportedTargets)
	}

	return out, true
}

// unanswered returns the nodes that did not answer, or why nobody can tell; targets returns those that its targets are.
func unanswered(r RequestRow, answered map[string]bool, targets func(to, on string) ([]string, error)) (missing []string, unknown string) {
	missing = []string{}
	asked, err := targets(r.To, r.On)
	if err != nil {
		return missing, "its target cannot be evaluated: " + compact.Line(err.Error(), compact.MaxText)
	}
	for _, name := range asked {
		if !answered[name] {
			missing = append(missing, name)
		}
	}
	if want := r.Nodes - r.Answers; len(missing) != want {
		return []string{}, fmt.Sprintf("%d did not answer, but its target is other nodes by now", want)
	}

	return missing, ""
}
