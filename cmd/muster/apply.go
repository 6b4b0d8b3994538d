package main

import (
	"context"
	"fmt"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// applyCommand is muster apply.
type applyCommand struct {
	manifestInputs
	noop, render, monitor    bool
	diff, diffSet            bool
	asJSON, noWait, detailed bool
}

func (a *app) addApply(ctx context.Context, cli *fisk.Application) {
	c := &applyCommand{}
	cmd := cli.Command("apply", "Bring this machine into the state that a manifest describes")
	cmd.HelpLong("The manifest is checked as a whole before anything is touched. Exit code 0 means that all is as described, 1 that a resource failed or the manifest is not valid.\n\n" +
		"  muster apply motd.yaml\n  muster apply --noop motd.yaml       what would change, with diffs\n  muster apply --monitor-only motd.yaml   only the health checks\n  muster apply kv://MY_BUCKET/motd    from NATS\n  muster apply -                      from standard input")
	cmd.Flag("noop", "Change nothing, say what would be changed").UnNegatableBoolVar(&c.noop)
	cmd.Flag("monitor-only", "Change nothing and look at nothing, only make the health checks").UnNegatableBoolVar(&c.monitor)
	cmd.Flag("diff", "Show what changes within files; on with --noop").IsSetByUser(&c.diffSet).BoolVar(&c.diff)
	cmd.Flag("render", "Print the resources with all expressions resolved, and do nothing").UnNegatableBoolVar(&c.render)
	cmd.Flag("json", "Print one transaction event a line").UnNegatableBoolVar(&c.asJSON)
	cmd.Flag("no-wait", "Fail when another run holds the lock").UnNegatableBoolVar(&c.noWait)
	cmd.Flag("detailed-exitcodes", "Exit 2 for changes, 4 for failures, 6 for both").UnNegatableBoolVar(&c.detailed)
	c.addManifest(cmd)
	cmd.Action(a.action(func() error { return a.apply(ctx, c) }))
}

func (a *app) apply(ctx context.Context, c *applyCommand) error {
	if c.noop && c.monitor {
		return usagef("--monitor-only and --noop: in noop no health checks are made, give one of them")
	}
	ask := a.lazyFacts(c.inputs)
	opts := a.loaderOptions(ask)
	if !c.render && !noop(c.noop) {
		opts.Unpack = a.unpackForRun
	}
	loader := manifest.NewLoader(opts)

	return a.withManifest(ctx, loader, c.manifestInputs, func(m opened) error {
		if c.render {
			text, err := m.Render()
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(text)
			return err
		}
		nodeFacts, err := ask(ctx)
		if err != nil {
			return err
		}
		return a.applyManifest(ctx, c, m, nodeFacts, loader.Origin(m.Resolved))
	})
}

func (a *app) applyManifest(ctx context.Context, c *applyCommand, m opened, facts model.Facts, origin resource.Origin) error {
	for _, w := range m.Warnings {
		a.log.Warn(w.Error())
	}
	if m.PreMessage != "" {
		fmt.Fprintln(a.stderr, m.PreMessage)
	}
	run, err := a.reconcile(ctx, reconciliation{
		session: m.session, resources: m.Resources, secrets: m.Secrets, command: "apply " + c.name(), manifest: identify(c.name()),
		journal: journalName(c.name(), m.source.Digest), digest: m.source.Digest, facts: facts,
		scope:     resource.Scope{Noop: c.noop, HealthCheckOnly: c.monitor, Dir: m.source.Dir, Origin: origin},
		stopFirst: m.FailOnError, noWait: c.noWait, diff: c.diff || (c.noop && !c.diffSet),
		asJSON: c.asJSON,
	})
	if err != nil {
		return err
	}
	if m.PostMessage != "" {
		fmt.Fprintln(a.stderr, m.PostMessage)
	}

	return a.conclude(ctx, run, c.detailed)
}
