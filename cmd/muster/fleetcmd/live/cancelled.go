package live

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/describe"
	"github.com/musterfleet/muster/fleet/request"
	"github.com/musterfleet/muster/model"
)

// isRejected reports whether a node did not accept a cancel: what it accepts has the phase of the
// request.
func isRejected(a model.EnsureResponse) bool { return a.Phase == "" }

// conclude prints the result of a cancel. The error is that a node executes the request still, or may.
func (c Canceller) conclude(ctx context.Context, r Cancelled) error {
	if c.IsDocument() {
		r.ID, r.States = c.CancelID, r.NodeStates()
		if err := c.Print.Document(r, c.YAML); err != nil {
			return err
		}
	} else {
		c.print(r)
	}
	text := c.summary(r)
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

// OK reports whether no node executes the request any more, as far as is known.
func (r Cancelled) OK() bool {
	for _, a := range r.Answers {
		if isRejected(a) || !a.Phase.Final() {
			return false
		}
	}

	return len(r.Missing) == 0
}

// print prints the answers, equal ones once.
func (c Canceller) print(r Cancelled) {
	for _, g := range Together(&request.Ensured{Answers: r.Answers}, func(model.EnsureResponse) []string { return nil }) {
		text := describe.Answer(g.Answer)
		switch {
		case g.Answer.Phase.Final() || isRejected(g.Answer):
		case c.Kill:
			text = "not ended yet"
		default:
			text = "not cancelled, the change in progress is finished"
		}
		c.Print.Printf("%s  %s: %s\n", print.Text(print.Some(g.Nodes, "--json has all")), c.Print.Word(string(describe.Outcome(g.Answer))), print.Text(print.OneLine(text)))
	}
}

// summary counts the nodes by what came of the cancel, and names those where it did not hold.
func (c Canceller) summary(r Cancelled) string {
	counts := map[bool]int{}
	var running, rejected []string
	for _, a := range r.Answers {
		switch {
		case isRejected(a):
			rejected = append(rejected, a.Node)
		case !a.Phase.Final():
			running = append(running, a.Node)
		default:
			counts[a.Phase == model.EnsureCancelled]++
		}
	}
	parts := []string{"cancelled on " + print.Count(counts[true], "node")}
	if counts[false] > 0 {
		parts = append(parts, "ended on "+print.Count(counts[false], "node"))
	}
	for _, more := range []struct {
		text  string
		names []string
	}{
		{"running, not cancelled: ", running}, {"rejected by: ", rejected}, {"no answer from: ", r.Missing},
		{"removed from the queue of: ", r.Withdrawn}, {"cancel queued for: ", r.Queued},
	} {
		if len(more.names) > 0 {
			parts = append(parts, more.text+print.Some(more.names, "--json has all"))
		}
	}

	return strings.Join(parts, ", ")
}
