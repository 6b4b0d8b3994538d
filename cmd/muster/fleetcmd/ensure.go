package fleetcmd

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/choria-io/fisk"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// ensureCommand is muster fleet ensure.
type ensureCommand struct {
	requestCommand
	// check marks a command that only reads.
	check   bool
	request string
	// position is the position of the resource in a document.
	position model.Position
}

// newEnsure returns the part of a command that sends an ensure request; verb is its name.
func newEnsure(env *cli.Env, verb string) ensureCommand {
	return ensureCommand{requestCommand: requestCommand{
		Env: env, verb: verb, protocol: model.ProtocolEnsureResponse, did: "answered", results: ensureResults,
	}}
}

// addEnsure adds the command to muster fleet.
func addEnsure(env *cli.Env, parent *fisk.CmdClause) {
	c := new(newEnsure(env, "ensure"))
	c.hasSubcommands, c.printAnswer = true, c.printOne
	cmd := parent.Command("ensure", "Ensure the state of one resource on many nodes, now")
	cmd.HelpLong("Prints answers as they come, and the nodes that did not answer. Exit code 0: every node answered and nothing failed.\n\n" +
		"  muster fleet ensure file /etc/motd --content hello --owner root --file-group root --mode 0644 --all\n" +
		"  muster fleet ensure exec 'systemctl reload nginx' --group web --timeout 30s\n" +
		"  muster fleet ensure service nginx --ensure running --on 'group(\"web\") && labels.rack == \"a3\"'\n" +
		"  muster fleet ensure request restart.json --node web01        a request as a document")
	c.AddRequest(env, cmd)
	c.AddOldGroup(cmd)
	cmd.Flag("timeout", "Time limit, of each batch; nodes do not start the request after it").Default("2m").DurationVar(&c.timeout)
	cli.OldFlag(cmd, "within").DurationVar(&c.timeout)
	cmd.Flag("queue", "Queue the request for unreachable nodes, for this long; they are no failure then").PlaceHolder("DURATION").DurationVar(&c.queue)
	cmd.Flag("noop", "Show what would change, and change nothing").UnNegatableBoolVar(&c.noop)
	cli.OldFlag(cmd, "dry-run").UnNegatableBoolVar(&c.noop)
	c.addBatches(cmd)
	c.AddSignKey(cmd)
	c.AddFormat(cmd)
	taken := cli.FlagNames(cmd)
	env.AddTypes(cmd, cli.TypeCommands{Taken: taken, Decode: resource.Decode, Act: func(ctx context.Context, t *resource.Type, properties document.Value) error {
		if err := cmp.Or(c.checkGroup(t), c.checkUnless(t, properties)); err != nil {
			return err
		}
		encoded, err := model.EncodeJSON(properties.Plain())
		if err != nil {
			return err
		}
		return c.run(ctx, model.EnsureRequest{Protocol: model.ProtocolEnsureRequest, Type: t.Name, Properties: encoded}, properties)
	}})
	for _, t := range env.Types {
		// Help of a command shows its own flags only.
		cmd.GetCommand(t.Name).HelpLong("Targets are --node NODE, --group GROUP and --all, or --on EXPR. For --yes, --timeout, --queue, --noop, --batch, --max-failures, --continue, --json and --yaml see muster fleet ensure --help. Properties of the resource that are called as one of them are --" + strings.Join(cli.TypeFlags(t, taken), ", --") + ".")
	}
	document := cmd.Command("request", "Send an ensure request that is a document, JSON or YAML")
	document.Arg("file", "File, or - for standard input").Required().StringVar(&c.request)
	document.Action(env.Action(c.runDocument))
	resume := cmd.Command("resume", "Send nothing: show the results of a request that was sent before")
	resume.HelpLong("Reads the results from the stream of reports, and waits --timeout for the results of the targets: --node NODE, --group GROUP and --all, or --on EXPR. Without a target it shows the stored results.")
	resume.Arg("id", "Id of the request").Required().StringVar(&c.resumeID)
	resume.Action(env.Action(c.resume))
	cancel := cmd.Command("cancel", "Cancel a request that was sent before")
	cancel.HelpLong("On the targets, --node NODE, --group GROUP and --all, or --on EXPR: nodes that did not start the request do not execute it; those that execute it finish the change in progress, or with --kill stop it; those that are done answer with their result. A queued request is removed from the queue. Exit code 0: no node executes it any more.\n\n" +
		"  muster fleet ensure cancel 35Vq5kqs9oGQ0rZJ1JnYb3yTqzT --all\n  muster fleet ensure cancel 35Vq5kqs9oGQ0rZJ1JnYb3yTqzT --group web --kill")
	cancel.Arg("id", "Id of the request").Required().StringVar(&c.cancelID)
	c.addKill(cancel)
	cancel.Action(env.Action(c.cancel))
}

// checkGroup returns the error of a --group that may be meant for the resource, as it once was, beside other
// targets: it would widen them.
func (c *ensureCommand) checkGroup(t *resource.Type) error {
	own := t.Name + "-group"
	if _, isOwned := t.Property("owner"); !isOwned || !slices.Contains(cli.TypeFlags(t, []string{"group"}), own) || c.Given(own, "in-group") || !c.Given("group") || !c.Given("node", "all") {
		return nil
	}

	return cli.Usagef("--group is a target here, beside the others: the group of the %s is --%s; without one, write the targets as --on 'group(\"web\") || node == \"db01\"'", t.Name, own)
}

// checkUnless rejects a condition in --unless, because nodes would run it as the guard command of an exec.
func (c *ensureCommand) checkUnless(t *resource.Type, properties document.Value) error {
	const guard = "unless"
	v, given := properties.Get(guard)
	if _, has := t.Property(guard); !has || !given || v.Text == "true" || v.Text == "false" || c.Loader(nil).CompileCondition(v.Text) != nil {
		return nil
	}

	return cli.Usagef("--unless has a condition, but requests have no conditions; select nodes with --on, or give a guard command")
}

// runDocument sends a request that is a document.
func (c *ensureCommand) runDocument(ctx context.Context) error {
	source, err := c.Loader(nil).Fetch(ctx, cmp.Or(c.request, cli.Stdin))
	if err != nil {
		return err
	}
	defer cli.CleanUp(c.Log, source.Close)
	req, properties, err := manifest.ParseRequest(source.Name, source.Data)
	if err != nil {
		return err
	}
	if _, err := manifest.NewLoader(manifest.Options{Types: c.Types}).DecodeOne(req.Type, properties); err != nil {
		return err
	}

	return c.run(ctx, req, properties)
}

// run sends a request with valid properties.
func (c *ensureCommand) run(ctx context.Context, req model.EnsureRequest, properties document.Value) error {
	if c.timeout < time.Second || c.queue != 0 && c.queue < time.Second || c.queue > kvstore.MaxCommandTTL {
		return cli.Usagef("--timeout and --queue must be at least 1s, --queue at most %s", kvstore.MaxCommandTTL)
	}
	if (req.Check || c.check) && (req.Noop || c.noop) {
		return cli.Usagef("--check runs the command and --noop does not: give one of them")
	}
	req.ID = cmp.Or(c.continueID, req.ID, ksuid.New().String())
	req.Noop, req.Check = cli.Noop(req.Noop || c.noop), req.Check || c.check
	c.position = properties.Pos
	c.queueCommand = cmp.Or(c.queueCommand, c.command("TYPE", "…"))

	return c.send(ctx, outgoing{id: req.ID, noop: req.Noop, asker: func(to opened) Asker {
		return Asker{Store: to.store.KV, Log: c.Log, Verb: kvstore.VerbEnsure, Sender: to.sender(), Expires: req.Expires, Within: c.timeout, Encode: encoder(to.signer, signed.Ensure, func(expires time.Time) any {
			req := req
			req.Expires = expires
			return req
		})}
	}})
}

// printOne prints the answer of a node.
func (c *ensureCommand) printOne(r model.EnsureResponse) {
	c.printSummary(r.Node, view.DescribeAnswer(r), r)
}

// printSummary prints an answer of nodes with a summary.
func (c *ensureCommand) printSummary(nodes, summary string, r model.EnsureResponse) {
	text := c.Print.Word(string(view.OutcomeOf(r)))
	if ask.Failed(r) && r.Phase != model.EnsureCancelled && c.position.Line > 0 {
		summary = c.position.String() + ": " + summary
	}
	if summary != "" {
		text += ": " + print.Text(print.OneLine(summary))
	}
	c.Print.Printf("%s  %s\n", print.Text(nodes), text)
	c.printOutput(r.State)
	hasDiff := func(c model.Change) bool { return c.Diff != "" }
	if r.State != nil && (r.State.Noop || slices.ContainsFunc(r.State.Changes, hasDiff)) {
		c.Print.Changes(r.State)
	}
}

// printOutput prints what a command printed; nodes bound it.
func (c *ensureCommand) printOutput(t *model.Transaction) {
	if t == nil {
		return
	}
	for _, stream := range []struct{ name, mark string }{{"stdout", "|"}, {"stderr", "!"}} {
		for line := range strings.Lines(output(t, stream.name)) {
			c.Print.Printf("  %s %s\n", stream.mark, print.Text(strings.TrimRight(line, "\r\n")))
		}
	}
}

// output returns a stream of what a command printed.
func output(t *model.Transaction, stream string) string {
	if t == nil {
		return ""
	}
	text, _ := t.Outputs[stream].(string)

	return text
}

// ensureResults names the command that shows the results of unfinished nodes.
func ensureResults(r *ask.Ensured) string {
	if len(r.Unfinished) == 1 {
		return " (it continues; for the result see: muster fleet reports --kind ensure --node " + r.Unfinished[0] + ")"
	}

	return " (they continue; for the results see: muster fleet reports --kind ensure)"
}
