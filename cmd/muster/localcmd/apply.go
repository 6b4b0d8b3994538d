package localcmd

import (
	"context"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// applyCommand is muster apply.
type applyCommand struct {
	runner
	manifestFlags
	noop, render, monitor bool
}

func addApply(env *cli.Env, app *fisk.Application) {
	c := &applyCommand{runner: runner{Env: env}}
	cmd := app.Command("apply", "Apply a manifest to this machine")
	cmd.HelpLong("The whole manifest is checked before anything is touched. Exit code 0: everything is as described; 1: a resource failed or the manifest is not valid.\n\n" +
		"  muster apply motd.yaml\n  muster apply --noop motd.yaml       what would change, with diffs\n  muster apply --monitor-only motd.yaml   only the health checks\n  muster apply kv://MY_BUCKET/motd    from NATS\n  muster apply -                      from standard input")
	cmd.Flag("noop", "Show what would change, and change nothing").UnNegatableBoolVar(&c.noop)
	cmd.Flag("monitor-only", "Run health checks only").UnNegatableBoolVar(&c.monitor)
	cmd.Flag("render", "Print the resources with all expressions resolved, and exit").UnNegatableBoolVar(&c.render)
	c.addFlags(cmd, "Show diffs of files; default with --noop", "Print one transaction event per line")
	c.add(cmd)
	c.AddReadEnv(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *applyCommand) run(ctx context.Context) error {
	if c.noop && c.monitor {
		return cli.Usagef("give one of --monitor-only and --noop: noop runs no health checks")
	}
	facts, err := c.LazyFacts(c.Inputs)
	if err != nil {
		return err
	}
	opts := c.LoaderOptions(facts)
	if !c.render && !cli.Noop(c.noop) {
		opts.Unpack = cli.UnpackForRun(c.Host())
	}
	loader := manifest.NewLoader(opts)

	return c.open(ctx, c.Env, loader, func(m opened) error {
		if c.render {
			text, err := m.Render()
			if err != nil {
				return err
			}
			_, err = c.Print.Out.Write(text)
			return err
		}
		nodeFacts, err := facts(ctx)
		if err != nil {
			return err
		}
		return c.apply(ctx, m, nodeFacts, loader.Origin(m.Resolved))
	})
}

func (c *applyCommand) apply(ctx context.Context, m opened, facts model.Facts, origin resource.Origin) error {
	for _, w := range m.Warnings {
		c.Log.Warn(w.Error())
	}
	if m.PreMessage != "" {
		c.Print.Remark("%s", m.PreMessage)
	}
	run, err := c.reconcile(ctx, reconciliation{
		session: m.session, resources: m.Resources, secrets: m.Secrets, command: "apply " + c.name(), manifest: identify(c.name()),
		journal: journalName(c.name(), m.source.Digest), digest: m.source.Digest, facts: facts,
		scope:     resource.Scope{Noop: c.noop, HealthCheckOnly: c.monitor, Dir: m.source.Dir, Author: m.source.Author, Origin: origin},
		stopFirst: m.FailOnError, diff: c.diff || (c.noop && !c.Given("diff")),
	})
	if err != nil {
		return err
	}
	if m.PostMessage != "" {
		c.Print.Remark("%s", m.PostMessage)
	}

	return c.conclude(ctx, run)
}
