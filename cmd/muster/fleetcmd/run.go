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
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// runCommand is muster fleet run.
type runCommand struct {
	requestCommand
	manifests []string
}

// addRun adds the command to muster fleet.
func addRun(env *cli.Env, parent *fisk.CmdClause) {
	c := &runCommand{requestCommand: requestCommand{Env: env, verb: "run", protocol: model.ProtocolRunResponse, did: "ran"}}
	c.results = func(*ask.Ensured) string { return " (for results see: muster fleet reports --cause request)" }
	c.show = c.printGroups
	cmd := parent.Command("run", "Run assigned manifests on nodes now")
	cmd.HelpLong("Nodes run all that is assigned to them, or the named manifests, and answer with the results; equal ones are shown once. A run in progress is finished first, and a paused node refuses, but for --noop. Exit code 0: every node answered and nothing failed.\n\n" +
		"  muster fleet run --node web01\n  muster fleet run --group web --manifest nginx --noop\n  muster fleet run --on 'state == \"failed\"' --timeout 10m")
	c.AddRequest(env, cmd)
	cmd.Flag("manifest", "Run this manifest, by its name; repeatable. Default: all that is assigned").PlaceHolder("NAME").HintAction(env.CompleteManifests).StringsVar(&c.manifests)
	cmd.Flag("noop", "Show what would change, and change nothing").UnNegatableBoolVar(&c.noop)
	c.addBatches(cmd)
	c.addSent(cmd)
	cmd.Flag("timeout", "Maximum time to wait, of each batch; nodes begin no run after it").Default("2m").DurationVar(&c.timeout)
	c.AddSignKey(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *runCommand) run(ctx context.Context) error {
	switch isCancelled := c.Given("cancel"); {
	case isCancelled && c.Given("resume"):
		return cli.Usagef("--cancel and --resume exclude each other")
	case isCancelled:
		return c.cancel(ctx)
	case c.Given("resume"):
		return c.resume(ctx)
	case c.timeout < time.Second:
		return cli.Usagef("--timeout must be at least 1s")
	}
	request := model.RunRequest{Protocol: model.ProtocolRunRequest, ID: cmp.Or(c.continueID, ksuid.New().String()), Manifests: c.manifests, Noop: cli.Noop(c.noop), Expires: time.Now()}
	if err := request.Check(); err != nil {
		return cli.Usagef("%w", err)
	}
	request.Expires = time.Time{} // each batch has its time

	return c.send(ctx, outgoing{id: request.ID, noop: request.Noop,
		check: func(s *Store) error {
			err := requests.New(s.KV).CheckRequests(ctx, kvstore.VerbRun)
			if errors.Is(err, requests.ErrRequestsNotPermitted) {
				return cli.Usagef("%w; nodes run their assignments at the interval of their agents", err)
			}
			return err
		},
		asker: func(to opened) Asker {
			return RunAsker(to.store.KV, to.signer, c.Log, to.sender(), request, c.timeout)
		},
	})
}

// printGroups prints answers, equal ones once.
func (c *runCommand) printGroups(r *ask.Ensured) {
	for _, g := range GroupEqual(r, ask.RunLines) {
		c.Print.Printf("%s  %s: %s\n", print.Text(print.Some(g.Nodes, "--json has all")), c.Print.Word(string(view.OutcomeOf(g.Value))), print.Text(print.OneLine(ask.RunHeadline(g.Value))))
		for _, line := range ask.RunLines(g.Value) {
			c.Print.Printf("  %s\n", print.Text(print.OneLine(line)))
		}
	}
}
