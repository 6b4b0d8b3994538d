package fleetcmd

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Cancel are the flags that cancel a request that was sent before.
type Cancel struct {
	CancelID string
	Kill     bool
}

// AddCancel adds the flag of the id.
func (c *Cancel) AddCancel(cmd *fisk.CmdClause) {
	cmd.Flag("cancel", "Cancel the request with this id on the targets, and show its state there").PlaceHolder("ID").StringVar(&c.CancelID)
}

// AddKill adds the flag that breaks off what is being executed.
func (c *Cancel) AddKill(cmd *fisk.CmdClause) {
	cmd.Flag("kill", "When cancelling: end the request also where it is being executed, as a time-out does").UnNegatableBoolVar(&c.Kill)
}

// Canceller cancels a request that was sent before, whoever sent it.
type Canceller struct {
	Cancel
	*cli.Env
	print.Format
	// Within is how long the end of what is killed is awaited.
	Within  time.Duration
	Signing *Signing
	// Resume is the command line that shows the results later.
	Resume string
}

// cancelValid is how long a cancel holds for which an answer is awaited.
const cancelValid = 2 * time.Minute

// Cancelled is what came of a cancel.
type Cancelled struct {
	*ask.Ensured
	// Withdrawn are the nodes and groups for which the request was queued.
	Withdrawn []string `json:"withdrawn,omitempty"`
}

// Run cancels the request on the targets: in the queue, on the nodes, and for those that do not
// answer by a cancel that is queued. The error is also of usage.
func (c Canceller) Run(ctx context.Context, aim *RequestTargets) error {
	if c.CancelID == "" || !model.IsRequestID(c.CancelID) {
		return cli.Usagef("the id of a request is one line of at most %d bytes", model.MaxRequestID)
	}
	on, list, err := aim.Compile(c.Env)
	if err != nil {
		return err
	}
	store, signer, err := OpenLive(ctx, c.Env, c.Signing)
	if err != nil {
		return err
	}
	to, err := aim.Find(ctx, store, on, list, nil)
	if err != nil {
		return err
	}
	by := cancels{store.KV, signer, c.Log, model.CancelRequest{Protocol: model.ProtocolCancelRequest, Request: c.CancelID, Kill: c.Kill, By: Operator()}}
	if !store.KV.Places().InUse().IsOwn() {
		return errors.Join(c.queueAll(ctx, by, to.List), to.Undecided)
	}
	out := Cancelled{}
	if out.Withdrawn, err = by.withdraw(ctx, to); err != nil {
		return err
	}
	out.Ensured, err = c.ask(ctx, by, to)
	if out.Ensured == nil {
		return err
	}
	if ctx.Err() == nil {
		err = errors.Join(err, by.queueMissing(ctx, out))
	}

	return errors.Join(err, c.conclude(ctx, out), to.Undecided)
}

// ask sends the cancel to the nodes. Only where it should end something, another answer than
// the first is awaited.
func (c Canceller) ask(ctx context.Context, by cancels, to RequestSelection) (*ask.Ensured, error) {
	ctx, done := context.WithTimeout(ctx, max(c.Within, time.Second))
	defer done()
	line := c.Print.Progress()
	defer line.Clear()
	ensurer := ask.Ensurer{Asker: by.asker(), Nodes: to.Known, Once: !c.Kill, OnProgress: func(p ask.Progress) {
		line.Show("%d of %s answered", p.Acknowledged, print.Count(p.Expected, "node"))
	}}

	return ensurer.Ensure(ctx, to.List, model.EnsureRequest{ID: c.CancelID})
}

// queueAll queues the cancel of an operator who is no administrator, in the place of what the
// same operator may have queued.
func (c Canceller) queueAll(ctx context.Context, by cancels, list []fleet.Target) error {
	out := Cancelled{Ensured: &ask.Ensured{ID: c.CancelID, Answers: []model.EnsureResponse{}}}
	for _, target := range list {
		if err := by.queue(ctx, target.String()); err != nil {
			return err
		}
		out.Queued = append(out.Queued, target.String())
	}

	return c.Print.Result(c.Format, out, func() {
		c.Print.Printf("cancel queued for: %s\n", print.Some(out.Queued, "--json has all"))
		c.Print.Remark("for the results see: %s", c.Resume)
	})
}

// cancels send and queue a cancel, signed where signer is not nil.
type cancels struct {
	store  *kvstore.Store
	signer *assign.Signing
	log    *slog.Logger
	cancel model.CancelRequest
}

// asker returns what sends the cancel to nodes.
func (c cancels) asker() Asker {
	return Asker{Store: c.store, Log: c.log, Verb: kvstore.VerbEnsure, Encode: func(ctx context.Context, family string) ([]byte, error) {
		return c.encode(ctx, family, cancelValid)
	}}
}

// encode returns the message of the cancel to the nodes of a family, which holds for some time.
func (c cancels) encode(ctx context.Context, family string, valid time.Duration) ([]byte, error) {
	cancel := c.cancel
	cancel.Expires = time.Now().Add(valid).UTC()
	if err := cancel.Check(); err != nil {
		return nil, err
	}
	data, err := model.EncodeJSON(cancel)
	if err != nil || c.signer == nil {
		return data, err
	}

	return c.signer.Cancel(ctx, family, data, cancel.Expires)
}

// queue queues the cancel for a family, in the place of a request that is queued for it.
func (c cancels) queue(ctx context.Context, family string) error {
	data, err := c.encode(ctx, family, kvstore.MaxCommandTTL)
	if err != nil {
		return err
	}

	return requests.New(c.store).PutCommand(ctx, family, c.cancel.Request, data, kvstore.MaxCommandTTL)
}

// withdraw replaces the requests that are queued for the targets, and returns for whom.
func (c cancels) withdraw(ctx context.Context, to RequestSelection) ([]string, error) {
	queued, err := requests.New(c.store).Queued(ctx, c.cancel.Request)
	if err != nil {
		return nil, err
	}
	isAll := false
	families := map[string]bool{}
	for _, t := range to.List {
		families[t.String()] = true
		isAll = isAll || t.Group == model.GroupAll
	}
	for _, node := range ask.NodesOf(to.List, to.Known) {
		families[model.NodeFamily(node)] = true
	}
	var out []string
	for _, family := range slices.Sorted(maps.Keys(queued)) {
		content, err := signed.Content(queued[family])
		if !isAll && !families[family] || err == nil && model.IsCancelRequest(content) {
			continue
		}
		if err := c.queue(ctx, family); err != nil {
			return out, err
		}
		out = append(out, family)
	}

	return out, nil
}

// queueMissing queues the cancel for the nodes that did not answer.
func (c cancels) queueMissing(ctx context.Context, out Cancelled) error {
	for i, node := range out.Missing {
		family := model.NodeFamily(node)
		if !slices.Contains(out.Withdrawn, family) {
			if err := c.queue(ctx, family); err != nil {
				out.Missing = out.Missing[i:]
				return err
			}
		}
		out.Queued = append(out.Queued, node)
	}
	out.Missing = nil

	return nil
}
