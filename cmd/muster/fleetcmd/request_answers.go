package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// EqualAnswers holds nodes with equal answers.
type EqualAnswers struct {
	Nodes  []string
	Answer model.EnsureResponse
}

// GroupEqual groups the nodes by their final answers, largest group first. Answers are equal if outcome, text
// and details are equal.
func GroupEqual(r *ask.Ensured, details func(model.EnsureResponse) []string) []EqualAnswers {
	var out []EqualAnswers
	positions := map[string]int{}
	unfinished := map[string]bool{}
	for _, node := range r.Unfinished {
		unfinished[node] = true
	}
	for _, a := range r.Answers {
		if unfinished[a.Node] {
			continue
		}
		of := strings.Join(append([]string{string(view.OutcomeOf(a)), view.DescribeAnswer(a)}, details(a)...), "\x00")
		i, known := positions[of]
		if !known {
			i = len(out)
			positions[of] = i
			out = append(out, EqualAnswers{Answer: a})
		}
		out[i].Nodes = append(out[i].Nodes, a.Node)
	}
	slices.SortStableFunc(out, func(a, b EqualAnswers) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })

	return out
}

// AnswerSummary counts the answers, and names the nodes without a result. did describes the finished nodes,
// such as "answered".
func AnswerSummary(r *ask.Ensured, did string) string {
	counts := map[model.Outcome]int{}
	states := map[ask.State][]string{}
	for _, a := range r.Answers {
		state := ask.StateOf(a)
		states[state] = append(states[state], a.Node)
		switch {
		case state == ask.StateCancelled:
			counts[model.OutcomeNotRun]++
		case ask.Failed(a):
			counts[model.OutcomeFailed]++
		default:
			counts[view.OutcomeOf(a)]++
		}
	}
	var parts []string
	if finished := len(r.Answers) - len(r.Unfinished); finished > 0 || len(r.Queued) == 0 {
		parts = append(parts, print.Count(finished, "node")+" "+did)
	}
	for _, more := range []struct {
		outcome model.Outcome
		word    string
	}{{model.OutcomeChanged, "changed"}, {model.OutcomeNoop, "would change"}, {model.OutcomeFailed, "failed"}, {model.OutcomeNotRun, "cancelled"}} {
		if counts[more.outcome] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[more.outcome], more.word))
		}
	}
	for _, more := range []struct {
		text  string
		nodes []string
	}{
		{"still working: ", states[ask.StateRunning]}, {"accepted, not started: ", states[ask.StateAccepted]},
		{"no answer from: ", r.Missing}, {"queued for: ", r.Queued}, {"no result yet from: ", r.Pending}, {"not asked: ", r.NotAsked},
	} {
		if len(more.nodes) > 0 {
			parts = append(parts, more.text+print.Some(more.nodes, "--json has all"))
		}
	}

	return strings.Join(parts, ", ")
}

// Conclusion prints the result of a request.
type Conclusion struct {
	print.Printer
	print.Format
	// Did describes the nodes that finished, such as answered.
	Did string
	// Results names the command that shows the results of unfinished nodes.
	Results func(*ask.Ensured) string
	// ID is the id of the request. Resume and Cancel are command lines that show its results later and cancel
	// it.
	ID, Resume, Cancel string
	// Continue is the command line that sends the request to the remaining nodes.
	Continue string
	// Near is a suggestion for the error that no node was asked.
	Near string
	// Show prints the answers; nil if they were printed on arrival.
	Show func(*ask.Ensured)
	// States prints a table of the states.
	States bool
}

// Conclude prints the result and returns its error.
func (c Conclusion) Conclude(ctx context.Context, r *ask.Ensured) error {
	if c.IsDocument() {
		r.ID, r.States = c.ID, r.NodeStates()
		if err := c.Document(r, c.YAML); err != nil {
			return err
		}
	} else if c.Show != nil {
		c.Show(r)
	}
	if c.States && !c.IsDocument() {
		c.printStates(r)
	}
	text := AnswerSummary(r, c.Did)
	if len(r.Unfinished) > 0 && ctx.Err() == nil {
		text += c.Results(r)
	}
	if r.Stopped != "" {
		text = r.Stopped + "; " + text
	}
	next := ""
	if len(r.NotAsked) > 0 && c.Continue != "" {
		next = "\nto continue with the remaining nodes: " + c.Continue
	}
	switch {
	case r.OK():
		if !c.IsDocument() {
			c.Remark("%s", text)
		}
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s; accepted requests continue; for the results run: %s, to cancel: %s%s", context.Cause(ctx), text, c.Resume, c.Cancel, next)
	case len(r.NodeStates()) == 0:
		return errors.New("no node answered, and no known node matches" + c.Near + " (see muster fleet nodes)")
	default:
		return errors.New(text + next)
	}
}

// printStates prints the number of nodes in each state, and some names.
func (c Conclusion) printStates(r *ask.Ensured) {
	nodes := map[ask.State][]string{}
	for node, state := range r.NodeStates() {
		nodes[state] = append(nodes[state], node)
	}
	var rows [][]string
	for _, state := range ask.States() {
		if in := nodes[state]; len(in) > 0 {
			slices.Sort(in)
			rows = append(rows, []string{string(state), strconv.Itoa(len(in)), print.Some(in, "--json has all")})
		}
	}
	c.Table([]string{"STATE", "COUNT", "NODES"}, rows, "no node was asked")
}
