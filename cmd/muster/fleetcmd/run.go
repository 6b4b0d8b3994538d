package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/choria-io/fisk"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// runCommand is muster fleet run.
type runCommand struct {
	*cli.Env
	print.Format
	RequestTargets
	Batches
	Resume
	Continue
	Cancel
	Signing
	manifests []string
	noop      bool
	timeout   time.Duration
}

// addRun adds the command to muster fleet.
func addRun(env *cli.Env, parent *fisk.CmdClause) {
	c := &runCommand{Env: env}
	cmd := parent.Command("run", "Run assigned manifests on nodes now")
	cmd.HelpLong("Nodes run all that is assigned to them, or the named manifests, and answer with the results; equal ones are shown once. A run in progress is finished first, and a paused node refuses, but for --noop. Exit code 0: every node answered and nothing failed.\n\n" +
		"  muster fleet run --node web01\n  muster fleet run --group web --manifest nginx --noop\n  muster fleet run --on 'state == \"failed\"' --timeout 10m")
	c.AddAim(env, cmd)
	cmd.Flag("manifest", "Run this manifest, by its name; repeatable. Default: all that is assigned").PlaceHolder("NAME").HintAction(env.CompleteManifests).StringsVar(&c.manifests)
	cmd.Flag("noop", "Show what would change, and change nothing").UnNegatableBoolVar(&c.noop)
	c.AddBatches(cmd)
	c.AddResume(cmd)
	c.AddContinue(cmd)
	c.AddCancel(cmd)
	cmd.Flag("timeout", "Maximum time to wait, of each batch; nodes begin no run after it").Default("2m").DurationVar(&c.timeout)
	c.AddSignKey(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

// request returns what is asked; the error is one of usage.
func (c *runCommand) request(now time.Time) (model.RunRequest, error) {
	out := model.RunRequest{Protocol: model.ProtocolRunRequest, ID: ksuid.New().String(), Manifests: c.manifests, Noop: cli.Noop(c.noop), Expires: now.Add(c.timeout).UTC()}
	if c.timeout < time.Second {
		return out, cli.Usagef("--timeout must be at least 1s")
	}
	if err := c.Continue.Check(c.Env); err != nil {
		return out, err
	}
	out.ID = cmp.Or(c.From, out.ID)
	if err := out.Check(); err != nil {
		return out, cli.Usagef("%w", err)
	}

	return out, nil
}

func (c *runCommand) run(ctx context.Context) error {
	switch isCancelled := c.Env.Given("cancel"); {
	case isCancelled && c.Env.Given("resume"):
		return cli.Usagef("--cancel and --resume exclude each other")
	case isCancelled:
		return c.cancel(ctx)
	case c.Env.Given("resume"):
		return c.resume(ctx)
	}
	on, list, err := c.RequestTargets.Compile(c.Env)
	if err != nil {
		return err
	}
	req, err := c.request(time.Now())
	if err != nil {
		return err
	}
	limits, err := c.Limits()
	if err != nil {
		return err
	}
	store, signer, err := OpenLive(ctx, c.Env, &c.Signing)
	if err != nil {
		return err
	}
	err = requests.New(store.KV).CheckRequests(ctx, kvstore.VerbRun)
	if errors.Is(err, requests.ErrRequestsNotPermitted) {
		err = cli.Usagef("%w; what is assigned runs by itself within the interval of the agents", err)
	}
	if err != nil {
		return err
	}
	var matched func(of, known int)
	if !c.IsDocument() {
		matched = func(of, known int) { c.Print.Remark("%d of %d nodes match", of, known) }
	}
	to, err := c.Find(ctx, store, on, list, matched)
	if err == nil && !req.Noop {
		err = c.RequestTargets.Confirm(c.Env, to)
	}
	if err != nil {
		return err
	}
	sender := to.Sender()
	if c.From != "" {
		if to, err = c.Rest(ctx, store.KV, c.Env, to, model.ProtocolRunResponse); err != nil {
			return err
		}
		if len(to.List) == 0 {
			return c.results(ctx, c.From)
		}
	}
	near := c.Warn(c.Env, to)
	conclusion := c.conclusion(req.ID, near)
	Announce(c.Env, c.Format, limits, conclusion.Resume)
	result, err := SendRequest(ctx, Link{Store: store.KV, Log: c.Log, Within: c.timeout}, to, limits, func(ctx context.Context, part string, list []fleet.Target) (*ask.Ensured, error) {
		req.Expires = time.Now().Add(c.timeout).UTC()
		return c.send(ctx, RunAsker(store.KV, signer, c.Log, sender, req), req.ID, part, list, to.Known)
	})
	if result == nil || err != nil && len(result.Answers)+len(result.Missing)+len(result.NotAsked) == 0 {
		return err
	}

	return errors.Join(err, conclusion.Conclude(ctx, result), to.Undecided)
}

// resume shows the results of a request that was sent before.
func (c *runCommand) resume(ctx context.Context) error {
	if err := c.Alone(c.Env, "--resume"); err != nil {
		return err
	}

	return c.results(ctx, c.ID)
}

// results shows the results of the request with an id.
func (c *runCommand) results(ctx context.Context, id string) error {
	result, err := Resumed{ID: id, Protocol: model.ProtocolRunResponse, Within: c.timeout}.Collect(ctx, c.Env, &c.RequestTargets)
	if result == nil {
		return err
	}
	conclusion := c.conclusion(id, "")
	conclusion.States = true

	return errors.Join(err, conclusion.Conclude(ctx, result))
}

// cancel cancels a request that was sent before.
func (c *runCommand) cancel(ctx context.Context) error {
	if err := c.Alone(c.Env, "--cancel"); err != nil {
		return err
	}

	return Canceller{
		Cancel: c.Cancel, Env: c.Env, Format: c.Format, Within: c.timeout, Signing: &c.Signing, Resume: c.conclusion(c.CancelID, "").Resume,
	}.Run(ctx, &c.RequestTargets)
}

// send sends the request and waits for the answers.
func (c *runCommand) send(ctx context.Context, by Asker, id, part string, list []fleet.Target, known RequestNodes) (*ask.Ensured, error) {
	limit, done := context.WithTimeout(ctx, c.timeout)
	defer done()
	line := c.Print.Progress()
	defer line.Clear()
	completer := Completer{Store: by.Store, Protocol: model.ProtocolRunResponse, Log: c.Log}
	ensurer := ask.Ensurer{Asker: by, Nodes: known, Reported: completer.Follow(id), OnProgress: func(p ask.Progress) {
		line.Show("%s%d of %s finished, %d working", part, p.Finished, print.Count(p.Expected, "node"), p.Acknowledged-p.Finished)
	}, OnSilent: func(nodes []string) { line.Show("no answer yet from %s", print.Some(nodes, "and others")) }}

	out, err := ensurer.Ensure(limit, list, model.EnsureRequest{ID: id})
	completer.Complete(ctx, id, out)

	return out, err
}

// conclusion returns how the result is shown.
func (c *runCommand) conclusion(id, near string) Conclusion {
	return Conclusion{
		Printer: c.Print, Format: c.Format, Did: "ran", Near: near, ID: id, Resume: c.Command("run", "--resume", id), Cancel: c.Command("run", "--cancel", id), States: c.HasBatches(),
		Continue: c.CommandLine("continue", id),
		Results:  " (for results see: muster fleet reports --cause request)",
		Show: func(r *ask.Ensured) {
			for _, g := range GroupEqual(r, lines) {
				c.printGroup(g)
			}
		},
	}
}
