package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
)

// addProvision adds the commands that set up a fleet.
func addProvision(env *cli.Env, parent *fisk.CmdClause) {
	addAccounts(env, parent)
	addPermissions(env, parent)
	addInit(env, parent)
}

// initCommand implements muster fleet init.
type initCommand struct {
	*cli.Env
	print.Format
	options   provision.Options
	yes, noop bool
}

func addInit(env *cli.Env, fleet *fisk.CmdClause) {
	c := &initCommand{Env: env}
	cmd := fleet.Command("init", "Create or update the buckets and streams of a fleet")
	cmd.HelpLong("Prints each step. A second run changes only the differences. It asks before it changes an existing stream, unless --yes is given, and never shrinks a stream with data.\n\n" +
		"  muster fleet init --noop\n  muster fleet init --replicas 3 --report-age 30d")
	cli.Int(cmd.Flag("replicas", "Replicas of each stream (default on creation: 1)").PlaceHolder("N"), &c.options.Replicas)
	cmd.Flag("report-age", "Maximum age of reports (default on creation: 7d)").PlaceHolder("AGE").DurationVar(&c.options.ReportAge)
	cmd.Flag("report-size", "Maximum size of all reports (default on creation: 1GiB)").PlaceHolder("SIZE").SetValue(size{&c.options.ReportBytes})
	cmd.Flag("report-count", "Maximum number of reports of one node, of each kind and outcome (default: 240)").PlaceHolder("N").Int64Var(&c.options.ReportCount)
	cmd.Flag("report-max", "Maximum size of one report (default: 64KiB)").PlaceHolder("SIZE").SetValue(size{&c.options.ReportMax})
	cmd.Flag("state-max", "Maximum size of the state of a node, and of its facts (default: 512KiB)").PlaceHolder("SIZE").SetValue(size{&c.options.StateMax})
	cmd.Flag("registration-size", "Maximum size of all registrations (default: a quarter of the size of reports, at most 256MiB)").PlaceHolder("SIZE").SetValue(size{&c.options.RegistrationBytes})
	cmd.Flag("manifest-size", "Maximum size of all assignments with their history (default: unlimited)").PlaceHolder("SIZE").SetValue(size{&c.options.ManifestBytes})
	cmd.Flag("command-size", "Maximum size of all queued requests (default: unlimited)").PlaceHolder("SIZE").SetValue(size{&c.options.CommandBytes})
	cmd.Flag("control-size", "Maximum size of all pauses, labels and groups (default: a quarter of the size of reports, at most 128MiB)").PlaceHolder("SIZE").SetValue(size{&c.options.ControlBytes})
	cmd.Flag("bundle-size", "Maximum size of all bundles (default on creation: unlimited)").PlaceHolder("SIZE").SetValue(size{&c.options.BundleBytes})
	cmd.Flag("noop", "Show the changes without applying them").UnNegatableBoolVar(&c.noop)
	cli.OldFlag(cmd, "dry-run").UnNegatableBoolVar(&c.noop)
	cmd.Flag("yes", "Skip confirmation").Short('y').UnNegatableBoolVar(&c.yes)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

// size is a flag value in bytes.
type size struct{ bytes *int64 }

// Set parses the value.
func (s size) Set(text string) error { return (*model.Size)(s.bytes).UnmarshalText([]byte(text)) }

// String returns the value.
func (s size) String() string { return model.Size(*s.bytes).String() }

func (c *initCommand) run(ctx context.Context) error {
	if err := c.validate(); err != nil {
		return err
	}
	kv, err := c.Store(ctx)
	if err != nil {
		return err
	}
	store := provision.New(kv)
	changes, err := store.Plan(ctx, c.options)
	if err != nil {
		return err
	}
	if !c.IsDocument() {
		printDifferences(c.Print, changes)
	}
	due := !cli.Noop(c.noop) && (len(changes) > 0 || c.options.Replicas > 1)
	if due {
		if len(changes) > 0 {
			c.warnReplicas(kv.Conn.ConnectedClusterName(), changes)
		}
		if err := c.confirm(changes); err != nil {
			return err
		}
		if c.options.Replicas > 1 && len(changes) > 0 && !c.IsDocument() {
			c.Print.Printf("waiting until each replica has all messages\n")
		}
		if changes, err = store.Apply(ctx, c.options); err != nil {
			return withRemedy(err)
		}
		c.warnShare(ctx, store)
	}

	return c.Print.Result(c.Format, changes, func() {
		if due && len(changes) > 0 {
			c.Print.Printf("done\n")
		}
		if due && slices.ContainsFunc(changes, func(d provision.Difference) bool { return d.Create }) && !c.isFleetAccount(ctx, store) {
			c.Print.Printf("%s\n", cli.OneAccount)
		}
	})
}

// isFleetAccount reports whether the connection uses the administrators' account of muster fleet accounts.
func (c *initCommand) isFleetAccount(ctx context.Context, store provision.Provisioner) bool {
	accounts, err := provision.AccountsOf(c.Flags.Prefix)

	return err == nil && store.Account(ctx) == accounts.Fleet.Name
}

// validate returns an error for the first invalid flag.
func (c *initCommand) validate() error {
	if c.Given("replicas") && (c.options.Replicas < 1 || c.options.Replicas > 5) {
		return cli.Usagef("--replicas %d: a stream has 1 to 5", c.options.Replicas)
	}
	if c.Given("report-age") && c.options.ReportAge <= 0 {
		return cli.Usagef("--report-age must be more than 0")
	}
	if c.Given("report-count") && c.options.ReportCount < 2 {
		return cli.Usagef("--report-count must be more than 1")
	}
	for flag, value := range map[string]int64{"report-max": c.options.ReportMax, "state-max": c.options.StateMax} {
		if c.Given(flag) && (value < provision.MinMessage || value > provision.MaxMessage) {
			return cli.Usagef("--%s must be from 16KiB to 64MiB", flag)
		}
	}

	return nil
}

// warnShare warns if one node can fill more than half of the report stream.
func (c *initCommand) warnShare(ctx context.Context, store provision.Provisioner) {
	if node, all, err := store.Share(ctx); err == nil && all > 0 && 2*node > all {
		c.Log.Warn("one node can fill more than half of the report stream: raise --report-size, or lower --report-count or --report-max", "node", node, "all", all)
	}
}

// warnReplicas warns of a known server bug with replicated streams, and of streams without replicas in a
// cluster.
func (c *initCommand) warnReplicas(cluster string, planned []provision.Difference) {
	isNew := slices.ContainsFunc(planned, func(d provision.Difference) bool { return d.Create })
	switch {
	case c.options.Replicas > 1:
		c.Log.Warn("up to nats-server 2.15.2, a user with write access can stop a replicated stream: see docs/security.md", "replicas", c.options.Replicas)
	case cluster != "" && isNew && !c.Given("replicas"):
		c.Log.Warn("each new stream is stored on one server of the cluster only; use --replicas 3 to survive the loss of a server, see docs/guides/clusters.md", "cluster", cluster)
	}
}

// confirm asks before existing streams change. Apply rejects some changes, which need no question.
func (c *initCommand) confirm(planned []provision.Difference) error {
	rejected := func(d provision.Difference) bool {
		return slices.ContainsFunc(d.Changes, func(change provision.Change) bool { return change.Refused != "" })
	}
	existing := func(d provision.Difference) bool { return !d.Create }
	if c.yes || slices.ContainsFunc(planned, rejected) || !slices.ContainsFunc(planned, existing) {
		return nil
	}

	return c.Confirm("no changes made", "existing streams would change")
}

// printDifferences prints the changes of provisioning.
func printDifferences(p print.Printer, planned []provision.Difference) {
	if len(planned) == 0 {
		p.Printf("everything is up to date\n")
	}
	for _, d := range planned {
		if d.Create {
			p.Printf("create %s\n", d.Stream)
		}
		for _, change := range d.Changes {
			p.Printf("change %s: %s\n", d.Stream, change)
		}
	}
}

// withRemedy adds the remedy to an error of Apply. The command can be repeated, because earlier changes stay.
func withRemedy(err error) error {
	switch {
	case errors.Is(err, provision.ErrReplicas):
		return fmt.Errorf("%w (stop no server until `nats stream report` lists every replica as current)", err)
	case errors.Is(err, kvstore.ErrNoRoom):
		return fmt.Errorf("%w (run it again with a smaller --report-size, --manifest-size, --command-size, --control-size or --bundle-size, or raise the limits of the account: max_file and max_streams of its jetstream block, max_file_store of the server's; muster needs seven streams)", err)
	default:
		return err
	}
}
