package view

import (
	"fmt"
	"maps"
	"slices"
)

// Request returns an answered request with the nodes that did not answer, and whether it is known. With run
// it returns the run request. Without run it returns another request, or the run request if there is no
// other.
//
// The targets are evaluated now, because the list of nodes is not stored. The result is valid only if it has
// as many nodes as the sender declared. The number of answers proves nothing, because a node may answer
// without being asked.
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

// unanswered returns the nodes that did not answer, and the nodes that answered without being asked, or the
// reason why they are unknown. targets returns the current targets.
func unanswered(r RequestRow, answered map[string]bool, targets func(to, on string) ([]string, error)) (missing, others []string, unknown string) {
	asked, err := targets(r.To, r.On)
	if err != nil {
		return []string{}, []string{}, "its target cannot be evaluated: " + firstLine(err.Error(), maxText)
	}
	if len(asked) != r.Nodes {
		return []string{}, []string{}, fmt.Sprintf("%d of %d nodes answered, but the target now selects other nodes", r.Answers, r.Nodes)
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
