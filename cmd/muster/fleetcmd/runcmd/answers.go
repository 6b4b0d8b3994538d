package runcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/describe"
	"github.com/musterfleet/muster/model"
)

// alike are the nodes of one answer.
type alike struct {
	nodes  []string
	answer model.EnsureResponse
}

// together returns which nodes gave equal final answers, the most frequent first.
func together(r *fleet.Ensured) []alike {
	var out []alike
	places := map[string]int{}
	for _, a := range r.Answers {
		if slices.Contains(r.Unfinished, a.Node) {
			continue
		}
		of := string(describe.Outcome(a)) + "\n" + describe.Answer(a) + "\n" + strings.Join(lines(a), "\n")
		i, known := places[of]
		if !known {
			i = len(out)
			places[of] = i
			out = append(out, alike{answer: a})
		}
		out[i].nodes = append(out[i].nodes, a.Node)
	}
	slices.SortStableFunc(out, func(a, b alike) int { return cmp.Compare(len(b.nodes), len(a.nodes)) })

	return out
}

// lines returns what came of the manifests that were not found as they should be.
func lines(a model.EnsureResponse) []string {
	var out []string
	for _, r := range a.Runs {
		if r.OK() && r.Counts.Changed == 0 {
			continue
		}
		line := fmt.Sprintf("%s@%d  %s: %s", r.Manifest, r.Revision, r.Outcome, describe.Counts(r.Counts))
		if r.RunID == "" {
			line = fmt.Sprintf("%s  %s", r.Manifest, r.Outcome)
		}
		if r.Error != "" {
			line += ": " + r.Error
		}
		out = append(out, line)
	}

	return out
}

// printGroup prints the answer of some nodes.
func (c *runCommand) printGroup(g alike) {
	c.Print.Printf("%s  %s: %s\n", print.Text(print.Some(g.nodes, "--json has all")), c.Print.Word(string(describe.Outcome(g.answer))), print.Text(print.OneLine(describe.Answer(g.answer))))
	for _, line := range lines(g.answer) {
		c.Print.Printf("  %s\n", print.Text(print.OneLine(line)))
	}
}

// summary counts the answers, and names the nodes that did not finish.
func summary(r *fleet.Ensured) string {
	counts := map[model.Outcome]int{}
	var accepted, working []string
	for _, a := range r.Answers {
		switch {
		case !slices.Contains(r.Unfinished, a.Node) && fleet.Failed(a):
			counts[model.OutcomeFailed]++
		case !slices.Contains(r.Unfinished, a.Node):
			counts[describe.Outcome(a)]++
		case a.Phase == model.EnsureAcknowledged:
			accepted = append(accepted, a.Node)
		default:
			working = append(working, a.Node)
		}
	}
	parts := []string{print.Count(len(r.Answers)-len(r.Unfinished), "node") + " ran"}
	for _, more := range []struct {
		outcome model.Outcome
		word    string
	}{{model.OutcomeChanged, "changed"}, {model.OutcomeNoop, "would change"}, {model.OutcomeFailed, "failed"}} {
		if counts[more.outcome] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[more.outcome], more.word))
		}
	}
	for _, more := range []struct {
		text  string
		nodes []string
	}{{"still working: ", working}, {"accepted, not started: ", accepted}, {"no answer from: ", r.Missing}} {
		if len(more.nodes) > 0 {
			parts = append(parts, more.text+print.Some(more.nodes, "--json has all"))
		}
	}
	if len(r.Unfinished) > 0 {
		parts[len(parts)-1] += " (for results see: muster fleet reports --cause request)"
	}

	return strings.Join(parts, ", ")
}
