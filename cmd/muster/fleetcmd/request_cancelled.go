package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// isRejected reports whether a node rejected a cancel. Accepted cancels carry the phase of the request.
func isRejected(a model.EnsureResponse) bool { return a.Phase == "" }

// isUnknown reports whether a node does not know the request to cancel.
func isUnknown(a model.EnsureResponse) bool { return ask.StateOf(a) == ask.StateUnknown }

// concludeCancel prints the result of a cancel. It returns an error if a node may still run the request, or
// if no node knows it.
func (c *requestCommand) concludeCancel(ctx context.Context, r Cancelled) error {
	if c.IsDocument() {
		r.ID, r.States = c.cancelID, r.NodeStates()
		if err := c.Print.Document(r, c.YAML); err != nil {
			return err
		}
	} else {
		c.printCancel(r)
	}
	text := c.cancelSummary(r)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s", context.Cause(ctx), text)
	case len(r.NodeStates())+len(r.Withdrawn) == 0:
		return errors.New("no node answered, and no known node matches (see muster fleet nodes)")
	case !r.OK():
		return errors.New(text)
	case !c.IsDocument():
		c.Print.Remark("%s", text)
	}

	return nil
}

// OK reports whether all nodes answered, none still runs the request, and a node or the queue knew it.
func (r Cancelled) OK() bool {
	for _, a := range r.Answers {
		if isRejected(a) || !a.Phase.Final() {
			return false
		}
	}

	return len(r.Missing) == 0 && !r.isUnknown()
}

// isUnknown reports whether no node that answered and no queue knew the request: its id may be mistyped.
func (r Cancelled) isUnknown() bool {
	return len(r.Answers) > 0 && len(r.Withdrawn) == 0 && !slices.ContainsFunc(r.Answers, func(a model.EnsureResponse) bool { return !isUnknown(a) })
}

// printCancel prints the answers, equal answers once.
func (c *requestCommand) printCancel(r Cancelled) {
	details := func(a model.EnsureResponse) []string { return []string{string(ask.StateOf(a))} }
	for _, g := range GroupEqual(&ask.Ensured{Answers: r.Answers}, details) {
		word, text := string(view.OutcomeOf(g.Answer)), view.DescribeAnswer(g.Answer)
		switch {
		case isUnknown(g.Answer):
			word, text = string(ask.StateUnknown), "does not know the request, and will not run it if it arrives within a day"
		case g.Answer.Phase.Final() || isRejected(g.Answer):
		case c.kill:
			text = "not ended yet"
		default:
			text = "still running until it finishes"
			if g.Answer.Protocol != model.ProtocolRunResponse {
				text += "; --kill ends it"
			}
		}
		c.Print.Printf("%s  %s: %s\n", print.Text(print.Some(g.Nodes, "--json has all")), c.Print.Word(word), print.Text(print.OneLine(text)))
	}
}

// isKilled reports whether the cancel killed the request.
func (c *requestCommand) isKilled(a model.EnsureResponse) bool {
	return c.kill && ask.Failed(a) && strings.Contains(view.DescribeAnswer(a), model.CancelRequest{}.String())
}

// cancelSummary counts the nodes by result, and names the nodes where the cancel had no effect.
func (c *requestCommand) cancelSummary(r Cancelled) string {
	var cancelled, killed, ended int
	var unknown, running, rejected []string
	for _, a := range r.Answers {
		switch {
		case isRejected(a):
			rejected = append(rejected, a.Node)
		case !a.Phase.Final():
			running = append(running, a.Node)
		case isUnknown(a):
			unknown = append(unknown, a.Node)
		case a.Phase == model.EnsureCancelled:
			cancelled++
		case c.isKilled(a):
			killed++
		default:
			ended++
		}
	}
	var parts []string
	for _, more := range []struct {
		text  string
		count int
	}{{"cancelled on ", cancelled}, {"killed on ", killed}, {"already ended on ", ended}} {
		if more.count > 0 {
			parts = append(parts, more.text+print.Count(more.count, "node"))
		}
	}
	unknownTo := "unknown to: "
	if r.isUnknown() {
		unknownTo = "no node that answered knows the request " + print.Text(c.cancelID) + ": "
	}
	for _, more := range []struct {
		text  string
		names []string
	}{
		{"still running: ", running}, {unknownTo, unknown}, {"rejected by: ", rejected}, {"no answer from: ", r.Missing},
		{"removed from the queue of: ", r.Withdrawn}, {"cancel queued for: ", r.Queued},
	} {
		if len(more.names) > 0 {
			parts = append(parts, more.text+print.Some(more.names, "--json has all"))
		}
	}

	return strings.Join(parts, ", ")
}
