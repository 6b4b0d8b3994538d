package ask

import (
	"fmt"
	"strings"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// RunHeadline returns the outcome of a request on a node, without the text of RunLines.
func RunHeadline(a model.EnsureResponse) string {
	if a.Error == "" && len(a.Runs) > 0 {
		return view.DescribeRuns(a.Runs)
	}

	return view.DescribeAnswer(a)
}

// RunLines describes the runs that changed something or failed. It leaves out an error that the node reports for the whole
// request.
func RunLines(a model.EnsureResponse) []string {
	var out []string
	for _, r := range a.Runs {
		if r.OK() && r.Counts.Changed == 0 {
			continue
		}
		line := fmt.Sprintf("%s@%d  %s: %s", r.Manifest, r.Revision, r.Outcome, r.Counts.Text())
		if r.RunID == "" {
			line = fmt.Sprintf("%s  %s", r.Manifest, r.Outcome)
		}
		if r.Error != "" && !strings.Contains(a.Error, r.Error) {
			line += ": " + r.Error
		}
		out = append(out, line)
	}

	return out
}
