package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// applyCommand is muster apply.
type applyCommand struct {
	inputs
	source                   string
	noop, render, monitor    bool
	diff, diffSet            bool
	asJSON, noWait, detailed bool
}

func (a *app) addApply(ctx context.Context, cli *fisk.Application) {
	c := &applyCommand{}
	cmd := cli.Command("apply", "Bring this machine into the state that a manifest describes")
	cmd.HelpLong("The manifest is checked as a whole before anything is touched. Exit code 0 means that all is as described, 1 that a resource failed or the manifest is not valid.\n\n" +
		"  muster apply motd.yaml\n  muster apply --noop motd.yaml       what would change, with diffs\n  muster apply --monitor-only motd.yaml   only the health checks\n  muster apply kv://MY_BUCKET/motd    from NATS\n  muster apply -                      from standard input")
	cmd.Arg("manifest", "A path, -, kv://bucket/key, obj://bucket/name or http(s)://; a tar.gz is a bundle").Required().StringVar(&c.source)
	cmd.Flag("noop", "Change nothing, say what would be changed").UnNegatableBoolVar(&c.noop)
	cmd.Flag("monitor-only", "Change nothing and look at nothing, only make the health checks").UnNegatableBoolVar(&c.monitor)
	cmd.Flag("diff", "Show what changes within files; on with --noop").IsSetByUser(&c.diffSet).BoolVar(&c.diff)
	cmd.Flag("render", "Print the resources with all expressions resolved, and do nothing").UnNegatableBoolVar(&c.render)
	cmd.Flag("json", "Print one transaction event a line").UnNegatableBoolVar(&c.asJSON)
	cmd.Flag("no-wait", "Fail when another run holds the lock").UnNegatableBoolVar(&c.noWait)
	cmd.Flag("detailed-exitcodes", "Exit 2 for changes, 4 for failures, 6 for both").UnNegatableBoolVar(&c.detailed)
	c.add(cmd)
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
	source, err := loader.Fetch(ctx, cmp.Or(c.source, stdinName))
	if err != nil {
		return err
	}
	defer a.closing(source.Close)
	session, err := a.openSession()
	if err != nil {
		return err
	}
	resolved, err := a.resolve(ctx, loader, source, c.inputs, session)
	if err != nil {
		return err
	}
	if c.render {
		text, err := resolved.Render()
		if err != nil {
			return err
		}
		_, err = a.stdout.Write(text)
		return err
	}
	for _, w := range resolved.Warnings {
		a.log.Warn(w.Error())
	}
	nodeFacts, err := ask(ctx)
	if err != nil {
		return err
	}
	if resolved.PreMessage != "" {
		fmt.Fprintln(a.stderr, resolved.PreMessage)
	}
	run, err := a.reconcile(ctx, reconciliation{
		session: session, resources: resolved.Resources, secrets: resolved.Secrets, command: "apply " + cmp.Or(c.source, stdinName), manifest: identify(cmp.Or(c.source, stdinName)), journal: journalName(cmp.Or(c.source, stdinName), source.Digest), digest: source.Digest, facts: nodeFacts,
		scope:     resource.Scope{Noop: c.noop, HealthCheckOnly: c.monitor, Dir: source.Dir, Origin: loader.Origin(resolved)},
		stopFirst: resolved.FailOnError, noWait: c.noWait, diff: c.diff || (c.noop && !c.diffSet),
		asJSON: c.asJSON,
	})
	if err != nil {
		return err
	}
	if resolved.PostMessage != "" {
		fmt.Fprintln(a.stderr, resolved.PostMessage)
	}

	return a.conclude(ctx, run, c.detailed)
}

// resolve parses a manifest and works out its resources.
func (a *app) resolve(ctx context.Context, loader *manifest.Loader, source *manifest.Source, in inputs, session *earlier) (*manifest.Resolved, error) {
	doc, err := loader.Parse(source)
	if err != nil {
		return nil, err
	}
	external, err := a.externalData(ctx, loader, in)
	if err != nil {
		return nil, err
	}

	return loader.Resolve(ctx, doc, manifest.Inputs{Data: external, Dir: source.Dir, Known: session.known})
}

func (a *app) externalData(ctx context.Context, loader *manifest.Loader, in inputs) (map[string]any, error) {
	if !in.dataSet {
		return nil, nil
	}

	return loader.LoadData(ctx, cmp.Or(in.data, stdinName), manifest.Inputs{})
}

// closing closes something of which only the log needs to know.
func (a *app) closing(f func() error) {
	if err := f(); err != nil {
		a.log.Warn("cleaning up", "error", err)
	}
}

// stdinName is the source that a lone dash names, of which fisk makes an empty
// argument.
const stdinName = "-"
