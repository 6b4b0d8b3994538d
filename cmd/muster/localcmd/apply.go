package localcmd

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/paths"
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
	r := reconciliation{session: m.session, resources: m.Resources, diff: c.diff || (c.noop && !c.Given("diff"))}
	r.Manifest, r.Digest, r.journal, r.Command = identify(c.name()), m.source.Digest, journalName(c.name(), m.source.Digest), "muster apply "+c.name()
	r.Secrets, r.FailOnError, r.Env.Facts = m.Secrets, m.FailOnError, facts
	r.Env.Scope = resource.Scope{Noop: c.noop, HealthCheckOnly: c.monitor, Dir: m.source.Dir, Author: m.source.Author, Origin: origin}
	run, err := c.reconcile(ctx, r)
	if err != nil {
		return err
	}
	if m.PostMessage != "" {
		c.Print.Remark("%s", m.PostMessage)
	}

	return c.conclude(ctx, run)
}

const dataHelp = "Additional data from a file, kv://bucket/key or http(s)://; overrides the manifest's own"

// manifestFlags are a manifest and its inputs.
type manifestFlags struct {
	cli.Inputs
	source string
}

func (m *manifestFlags) add(cmd *fisk.CmdClause) {
	cmd.Arg("manifest", "Path, directory with manifest.yaml, -, kv://bucket/key, obj://bucket/name or http(s)://; a tar.gz is a bundle").Required().StringVar(&m.source)
	m.AddFacts(cmd)
	m.AddData(cmd, dataHelp)
	m.AddMaxDepth(cmd)
}

// name returns the source; of a directory it is the manifest.yaml at its root.
func (m *manifestFlags) name() string {
	if info, err := os.Stat(m.source); err == nil && info.IsDir() {
		return filepath.Join(m.source, model.BundleManifest)
	}

	return cmp.Or(m.source, cli.Stdin)
}

// opened is a manifest with all expressions resolved.
type opened struct {
	*manifest.Resolved
	source  *manifest.Source
	session *sessionContext
}

// open fetches, checks and resolves the manifest, and calls do. It removes unpacked files afterwards.
func (m *manifestFlags) open(ctx context.Context, env *cli.Env, loader *manifest.Loader, do func(opened) error) error {
	if err := m.CheckMaxDepth(); err != nil {
		return err
	}
	source, err := loader.Fetch(ctx, m.name())
	if errors.Is(err, fs.ErrNotExist) && m.name() != m.source {
		return manifest.NoManifest(m.source)
	}
	if err != nil {
		return cli.FileError("manifest", m.name(), err)
	}
	defer cli.CleanUp(env.Log, source.Close)
	session, err := openSession(ctx, env.Host())
	if err != nil {
		return err
	}
	doc, err := loader.Parse(source)
	if err != nil {
		return err
	}
	data, err := externalData(ctx, env, loader, m.Inputs, source.Author)
	if err != nil {
		return err
	}
	resolved, err := loader.Resolve(ctx, doc, manifest.Inputs{Data: data.Values, Untrusted: data.Untrusted, Dir: source.Dir, Author: source.Author, Known: session.known, MaxDepth: m.MaxDepth})
	if err != nil {
		return err
	}

	return do(opened{resolved, source, session})
}

// externalData returns the external data of a manifest. A file of the author is trusted.
func externalData(ctx context.Context, env *cli.Env, loader *manifest.Loader, in cli.Inputs, author paths.Author) (manifest.Data, error) {
	source, flag, err := in.DataSource()
	if err != nil || source == "" {
		return manifest.Data{}, err
	}
	data, err := loader.LoadData(ctx, source, manifest.Inputs{Author: author})

	return data, cli.FileError(flag, source, err)
}

// journalName identifies a manifest in the journal: a file by its real path,
// standard input by its digest.
func journalName(source, digest string) string {
	if source == cli.Stdin {
		return source + " " + digest
	}
	name := identify(source)
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}

	return name
}

// identify names a manifest: the absolute path of a file, else its source.
func identify(source string) string {
	if source == cli.Stdin || strings.Contains(source, "://") {
		return source
	}
	abs, err := filepath.Abs(source)
	if err != nil {
		return source
	}

	return abs
}
