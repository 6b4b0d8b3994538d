package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// cancelValid is the validity of a cancel that waits for answers.
const cancelValid = 2 * time.Minute

// cancel cancels a request of any sender on the targets: in the queue, on the nodes, and with a queued cancel for nodes
// that do not answer. The error may be a usage error.
func (c *requestCommand) cancel(ctx context.Context) error {
	if err := c.sendsNothing("cancel"); err != nil {
		return err
	}
	if err := checkID(c.cancelID, ""); err != nil {
		return err
	}
	to, err := c.openLive(ctx, nil)
	if err != nil {
		return err
	}
	asker := Asker{Store: to.store.KV, Log: c.Log, Verb: kvstore.VerbEnsure, Within: cancelValid, Encode: encoder(to.signer, signed.Cancel, func(expires time.Time) any {
		return model.CancelRequest{Protocol: model.ProtocolCancelRequest, Request: c.cancelID, Kill: c.kill, By: Operator(), Expires: expires}
	})}
	if !to.store.KV.API.InUse().IsOwn() {
		err := c.queueAll(ctx, asker, to, c.cancelID, kvstore.MaxCommandTTL, "cancel queued")
		if err == nil && !c.IsDocument() {
			c.Print.Remark("for the results see: %s", c.again("resume", c.cancelID))
		}
		return err
	}
	out := ask.Cancelled{Request: c.cancelID, Kills: c.kill}
	if out.Withdrawn, err = asker.withdraw(ctx, to, c.cancelID); err != nil {
		return err
	}
	line := c.Print.Progress()
	defer line.Clear()
	request := ask.Request{
		ID: c.cancelID, Network: asker, Targets: to.targets, Known: to.known, Timeout: max(c.timeout, time.Second),
		FirstOnly: !c.kill, // only a kill has a second answer to wait for
		OnProgress: func(_ string, p ask.Progress) {
			line.Show("%d of %s answered", p.Acknowledged, print.Count(p.Expected, "node"))
		},
	}
	out.Ensured, err = request.Send(ctx)
	line.Clear()
	if ctx.Err() == nil {
		err = errors.Join(err, asker.queueMissing(ctx, out.Ensured, c.cancelID, kvstore.MaxCommandTTL, out.Withdrawn))
	}

	return errors.Join(err, c.concludeCancel(ctx, out), to.undecided)
}

// withdraw replaces the queued requests of the targets that have an id, and returns their families.
func (a Asker) withdraw(ctx context.Context, to opened, id string) ([]string, error) {
	queued, err := requests.New(a.Store).Queued(ctx, id)
	if err != nil {
		return nil, err
	}
	isAll := false
	families := map[string]bool{}
	for _, t := range to.targets {
		families[t.String()] = true
		isAll = isAll || t.Group == model.GroupAll
	}
	for _, node := range to.nodes() {
		families[model.NodeFamily(node)] = true
	}
	var out []string
	for _, family := range slices.Sorted(maps.Keys(queued)) {
		content, err := signed.Content(queued[family])
		if !isAll && !families[family] || err == nil && model.IsCancelRequest(content) {
			continue
		}
		if err := a.queue(ctx, family, id, kvstore.MaxCommandTTL); err != nil {
			return out, err
		}
		out = append(out, family)
	}

	return out, nil
}

// concludeCancel prints the result of a cancel. It returns an error if a node may still run the request, or
// if no node knows it.
func (c *requestCommand) concludeCancel(ctx context.Context, r ask.Cancelled) error {
	if c.IsDocument() {
		r.ID, r.States = c.cancelID, r.NodeStates()
		if err := c.Print.Document(r, c.YAML); err != nil {
			return err
		}
	} else {
		printCancelled(c.Print, r)
	}
	text := cancelSummary(r)
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

// printCancelled prints the answers, equal answers once.
func printCancelled(to print.Printer, r ask.Cancelled) {
	details := func(a model.EnsureResponse) []string { return []string{string(ask.StateOf(a))} }
	for _, g := range GroupEqual(&ask.Ensured{Answers: r.Answers}, details) {
		word, text := string(view.OutcomeOf(g.Value)), view.DescribeAnswer(g.Value)
		switch {
		case ask.IsUnknown(g.Value):
			word, text = string(ask.StateUnknown), "does not know the request, and will not run it if it arrives within a day"
		case g.Value.Phase.Final() || ask.IsRejected(g.Value):
		case r.Kills:
			text = "not ended yet"
		default:
			text = "still running until it finishes"
			if g.Value.Protocol != model.ProtocolRunResponse {
				text += "; --kill ends it"
			}
		}
		to.Printf("%s  %s: %s\n", print.Text(print.Some(g.Nodes, "--json has all")), to.Word(word), print.Text(print.OneLine(text)))
	}
}

// cancelSummary counts the nodes by result, and names the nodes where the cancel had no effect.
func cancelSummary(r ask.Cancelled) string {
	var cancelled, killed, ended int
	var unknown, running, rejected []string
	for _, a := range r.Answers {
		switch {
		case ask.IsRejected(a):
			rejected = append(rejected, a.Node)
		case !a.Phase.Final():
			running = append(running, a.Node)
		case ask.IsUnknown(a):
			unknown = append(unknown, a.Node)
		case a.Phase == model.EnsureCancelled:
			cancelled++
		case r.IsKilled(a):
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
	if r.IsUnknown() {
		unknownTo = "no node that answered knows the request " + print.Text(r.Request) + ": "
	}
	parts = append(parts, listed(
		nodeList{"still running: ", running}, nodeList{unknownTo, unknown}, nodeList{"rejected by: ", rejected}, nodeList{"no answer from: ", r.Missing},
		nodeList{"removed from the queue of: ", r.Withdrawn}, nodeList{"cancel queued for: ", r.Queued},
	)...)

	return strings.Join(parts, ", ")
}
