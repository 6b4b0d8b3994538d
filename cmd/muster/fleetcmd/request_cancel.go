package fleetcmd

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// cancelValid is the validity of a cancel that waits for answers.
const cancelValid = 2 * time.Minute

// Cancelled is the result of a cancel.
type Cancelled struct {
	*ask.Ensured
	// Withdrawn are the nodes and groups whose queued request was removed.
	Withdrawn []string `json:"withdrawn,omitempty"`
}

// cancel cancels a request of any sender on the targets: in the queue, on the nodes, and with a queued cancel for nodes
// that do not answer. The error may be a usage error.
func (c *requestCommand) cancel(ctx context.Context) error {
	if err := c.sendsNothing("cancel"); err != nil {
		return err
	}
	if err := checkID(c.cancelID, ""); err != nil {
		return err
	}
	on, list, err := c.Compile(c.Env)
	if err != nil {
		return err
	}
	store, signer, err := OpenLive(ctx, c.Env, &c.Signing)
	if err != nil {
		return err
	}
	to, err := find(ctx, store, on, list)
	if err != nil {
		return err
	}
	asker := cancelAsker(store.KV, signer, c.Log, model.CancelRequest{Protocol: model.ProtocolCancelRequest, Request: c.cancelID, Kill: c.kill, By: Operator()})
	if !store.KV.Places().InUse().IsOwn() {
		return errors.Join(c.queueCancels(ctx, asker, to.targets), to.undecided)
	}
	out := Cancelled{}
	if out.Withdrawn, err = c.withdraw(ctx, asker, to); err != nil {
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

// cancelAsker returns the asker of a cancel, signed unless signer is nil.
func cancelAsker(store *kvstore.Store, signer *assign.Signing, log *slog.Logger, cancel model.CancelRequest) Asker {
	return Asker{Store: store, Log: log, Verb: kvstore.VerbEnsure, Within: cancelValid, Encode: func(ctx context.Context, family string, expires time.Time) ([]byte, error) {
		cancel := cancel
		cancel.Expires = expires
		if err := cancel.Check(); err != nil {
			return nil, err
		}
		return signature((*assign.Signing).Cancel).encode(ctx, signer, family, cancel, expires)
	}}
}

// queueCancels queues a cancel because the account of the operator cannot send requests. It replaces a request that the
// operator queued.
func (c *requestCommand) queueCancels(ctx context.Context, asker Asker, list []fleet.Target) error {
	out := Cancelled{Ensured: &ask.Ensured{ID: c.cancelID, Answers: []model.EnsureResponse{}}}
	for _, target := range list {
		if err := asker.queue(ctx, target.String(), c.cancelID, kvstore.MaxCommandTTL); err != nil {
			return err
		}
		out.Queued = append(out.Queued, target.String())
	}

	return c.Print.Result(c.Format, out, func() {
		c.Print.Printf("cancel queued for: %s\n", print.Some(out.Queued, "--json has all"))
		c.Print.Remark("for the results see: %s", c.conclusion(c.cancelID).Resume)
	})
}

// withdraw replaces the queued requests of the targets with the cancel and returns their families.
func (c *requestCommand) withdraw(ctx context.Context, asker Asker, to selection) ([]string, error) {
	queued, err := requests.New(asker.Store).Queued(ctx, c.cancelID)
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
		if err := asker.queue(ctx, family, c.cancelID, kvstore.MaxCommandTTL); err != nil {
			return out, err
		}
		out = append(out, family)
	}

	return out, nil
}
