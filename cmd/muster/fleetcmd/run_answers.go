package fleetcmd

import (
	"fmt"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// runHeadline returns what came of a request on a node, without what lines has.
func runHeadline(a model.EnsureResponse) string {
	if a.Error == "" && len(a.Runs) > 0 {
		return view.DescribeRuns(a.Runs)
	}

	return view.DescribeAnswer(a)
}

// lines returns what came of the manifests that were not found as they should be. An error that the node has for the
// whole request is not repeated.
func lines(a model.EnsureResponse) []string {
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

// printGroup prints the answer of some nodes.
func (c *runCommand) printGroup(g EqualAnswers) {
	c.Print.Printf("%s  %s: %s\n", print.Text(print.Some(g.Nodes, "--json has all")), c.Print.Word(string(view.OutcomeOf(g.Answer))), print.Text(print.OneLine(runHeadline(g.Answer))))
	for _, line := range lines(g.Answer) {
		c.Print.Printf("  %s\n", print.Text(print.OneLine(line)))
	}
}
