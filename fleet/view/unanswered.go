package view

import (
	"fmt"
	"maps"
	"slices"
)

// Request returns a request that nodes answered, with those that did not, and whether it is known: the run with an
// id, or what is no run, and the run where there is nothing else.
//
// Nobody wrote down whom it was sent to. So its targets are evaluated as of now, and what is found counts only
// where it is as many nodes as the sender asked. As many answers say nothing alone: a node may answer that was not asked.
func (f *Fleet) Request(id string, run bool) (RequestDetail, bool) {
	found, is := f.log.Request(id, run)
	if !is {
		return RequestDetail{}, false
	}
	row, answered := found.RequestRow, found.By
	out := RequestDetail{Progress: f.Progress(), RequestRow: row, Missing: []string{}, Others: []string{}, SameID: found.SameID, Answered: slices.Sorted(maps.Keys(answered))}
	switch {
	case out.Nodes == 0:
		out.Unknown = "the sender did not say how many nodes it asked, or the agents are of an earlier version"
	case out.To == "" && out.On == "":
		out.Unknown = "the sender did not say which nodes it asked, or the target is long"
		if out.Answers >= out.Nodes {
			out.Unknown = "as many answered as were asked, but " + out.Unknown
		}
	case len(answered) < out.Answers:
		out.Unknown = "not all of its answers are kept any more"
	default:
		out.Missing, out.Others, out.Unknown = unanswered(row, answered, f.nodes.ReportedTargets)
	}

	return out, true
}

// unanswered returns the nodes that did not answer and those that answered and were not asked, or why nobody can tell;
// targets returns those that its targets are.
func unanswered(r RequestRow, answered map[string]bool, targets func(to, on string) ([]string, error)) (missing, others []string, unknown string) {
	asked, err := targets(r.To, r.On)
	if err != nil {
		return []string{}, []string{}, "its target cannot be evaluated: " + firstLine(err.Error(), maxText)
	}
	if len(asked) != r.Nodes {
		return []string{}, []string{}, fmt.Sprintf("%d answered of %d that were asked, but its target is other nodes by now", r.Answers, r.Nodes)
	}
	missing, others = []string{}, []string{}
	wasAsked := map[string]bool{}
	for _, name := range asked {
		if wasAsked[name] = true; !answered[name] {
			missing = append(missing, name)
		}
	}
	for name := range answered {
		if !wasAsked[name] {
			others = append(others, name)
		}
	}
	slices.Sort(others)

	return missing, others, ""
}
