package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/choria-io/fisk"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// ensureCommand is muster fleet ensure.
type ensureCommand struct {
	*cli.Env
	print.Format
	RequestTargets
	Batches
	Resume
	Continue
	Cancel
	Signing
	timeout time.Duration
	// grace is how much longer answers are awaited.
	grace time.Duration
	queue time.Duration
	noop  bool
	// check marks a command that only reads.
	check   bool
	request string
	// place is where a document declares the resource.
	place model.Position
	// together is that equal answers are shown once, at the end.
	together bool
	// queued is the command line that queues the same, empty for that of ensure.
	queued string
	// near follows the error that nobody answered: what else may be meant.
	near string
}

// addEnsure adds the command to muster fleet.
func addEnsure(env *cli.Env, parent *fisk.CmdClause) {
	c := &ensureCommand{Env: env}
	cmd := parent.Command("ensure", "Ensure the state of one resource on many nodes, now")
	cmd.HelpLong("Prints answers as they come, and the nodes that did not answer. Exit code 0: every node answered and nothing failed.\n\n" +
		"  muster fleet ensure file /etc/motd --content hello --owner root --file-group root --mode 0644 --all\n" +
		"  muster fleet ensure exec 'systemctl reload nginx' --group web --timeout 30s\n" +
		"  muster fleet ensure service nginx --ensure running --on 'group(\"web\") && labels.rack == \"a3\"'\n" +
		"  muster fleet ensure request restart.json --node web01        a request as a document")
	c.AddAim(env, cmd)
	c.AddOldGroup(cmd)
	cmd.Flag("timeout", "Time limit, of each batch; nodes do not start the request after it").Default("2m").DurationVar(&c.timeout)
	cli.OldFlag(cmd, "within").DurationVar(&c.timeout)
	cmd.Flag("queue", "Queue the request for unreachable nodes, for this long; they are no failure then").PlaceHolder("DURATION").DurationVar(&c.queue)
	cmd.Flag("noop", "Show what would change, and change nothing").UnNegatableBoolVar(&c.noop)
	cli.OldFlag(cmd, "dry-run").UnNegatableBoolVar(&c.noop)
	c.AddBatches(cmd)
	c.AddContinue(cmd)
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
	resume.Arg("id", "Id of the request").Required().StringVar(&c.ID)
	resume.Action(env.Action(c.resume))
	cancel := cmd.Command("cancel", "Cancel a request that was sent before")
	cancel.HelpLong("On the targets, --node NODE, --group GROUP and --all, or --on EXPR: nodes that did not start the request do not execute it; those that execute it finish the change in progress, or with --kill stop it; those that are done answer with their result. A queued request is removed from the queue. Exit code 0: no node executes it any more.\n\n" +
		"  muster fleet ensure cancel 35Vq5kqs9oGQ0rZJ1JnYb3yTqzT --all\n  muster fleet ensure cancel 35Vq5kqs9oGQ0rZJ1JnYb3yTqzT --group web --kill")
	cancel.Arg("id", "Id of the request").Required().StringVar(&c.CancelID)
	c.AddKill(cancel)
	cancel.Action(env.Action(c.cancel))
}

// checkGroup returns the error of a --group that may be meant for the resource, as it once was, beside other
// targets: it would widen them.
func (c *ensureCommand) checkGroup(t *resource.Type) error {
	own := t.Name + "-group"
	if !slices.Contains(cli.TypeFlags(t, []string{"group"}), own) || c.Given(own, "in-group") || !c.Given("group") || !c.Given("node", "all") {
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
	defer c.CleanUp(source.Close)
	req, properties, err := manifest.ParseRequest(source.Name, source.Data)
	if err != nil {
		return err
	}
	if _, err := manifest.NewLoader(manifest.Options{Types: c.Types}).DecodeOne(req.Type, properties); err != nil {
		return err
	}

	return c.run(ctx, req, properties)
}

// run sends a request, whose properties are valid.
func (c *ensureCommand) run(ctx context.Context, req model.EnsureRequest, properties document.Value) error {
	on, list, err := c.RequestTargets.Compile(c.Env)
	if err != nil {
		return err
	}
	if c.timeout < time.Second || c.queue != 0 && c.queue < time.Second || c.queue > kvstore.MaxCommandTTL {
		return cli.Usagef("--timeout and --queue must be at least 1s, --queue at most %s", kvstore.MaxCommandTTL)
	}
	limits, err := c.Limits()
	if err == nil {
		err = c.Continue.Check(c.Env)
	}
	switch {
	case err != nil:
		return err
	case (req.Check || c.check) && (req.Noop || c.noop):
		return cli.Usagef("--check runs the command and --noop does not: give one of them")
	case limits != nil && c.queue > 0:
		return cli.Usagef("nodes execute what is queued whenever they come back, in no batch: give --batch or --queue")
	}
	req, c.place = c.complete(req), properties.Pos
	store, signer, err := OpenLive(ctx, c.Env, &c.Signing)
	if err != nil {
		return err
	}
	aim, err := c.Find(ctx, store, on, list, c.matched())
	if err == nil && !req.Noop {
		err = c.RequestTargets.Confirm(c.Env, aim)
	}
	if err != nil {
		return err
	}
	sender := sender{store.KV, signer, c.Log, aim.Sender()}
	if c.From != "" {
		if aim, err = c.Rest(ctx, store.KV, c.Env, aim, model.ProtocolEnsureResponse); err != nil {
			return err
		}
		if len(aim.List) == 0 {
			return c.results(ctx, c.From)
		}
	}
	if !store.KV.Places().InUse().IsOwn() {
		return errors.Join(c.queueAll(ctx, sender, aim.List, req), aim.Undecided)
	}
	c.near = c.Warn(c.Env, aim)
	conclusion := c.conclusion(req.ID)
	Announce(c.Env, c.Format, limits, conclusion.Resume)
	result, err := SendRequest(ctx, Link{Store: store.KV, Log: c.Log, Within: c.timeout}, aim, limits, func(ctx context.Context, part string, list []fleet.Target) (*ask.Ensured, error) {
		return c.send(ctx, sender, req, part, list, aim.Known)
	})
	if result == nil {
		return err
	}
	if c.queue > 0 && ctx.Err() == nil {
		err = errors.Join(err, sender.queueMissing(ctx, result, req, c.queue))
	}
	if err != nil && len(result.NodeStates()) == 0 {
		return err
	}

	conclusion.Results = ensureResults(result)
	return errors.Join(err, conclusion.Conclude(ctx, result), aim.Undecided)
}

// resume shows the results of a request that was sent before.
func (c *ensureCommand) resume(ctx context.Context) error {
	if err := c.Alone(c.Env, "resume"); err != nil {
		return err
	}

	return c.results(ctx, c.ID)
}

// results shows the results of the request with an id.
func (c *ensureCommand) results(ctx context.Context, id string) error {
	resumed := Resumed{ID: id, Protocol: model.ProtocolEnsureResponse, Within: c.timeout, OnAnswer: func(r model.EnsureResponse) {
		if !c.IsDocument() && !c.together {
			c.printAnswer(r.Node, r)
		}
	}}
	result, err := resumed.Collect(ctx, c.Env, &c.RequestTargets)
	if result == nil {
		return err
	}
	conclusion := c.conclusion(id)
	conclusion.States = true

	return errors.Join(err, conclusion.Conclude(ctx, result))
}

// cancel cancels a request that was sent before.
func (c *ensureCommand) cancel(ctx context.Context) error {
	if err := c.Alone(c.Env, "cancel"); err != nil {
		return err
	}

	return Canceller{
		Cancel: c.Cancel, Env: c.Env, Format: c.Format, Within: c.timeout, Signing: &c.Signing, Resume: c.conclusion(c.CancelID).Resume,
	}.Run(ctx, &c.RequestTargets)
}

// queueAll queues the request of an operator who is no administrator: no request of
// another account reaches a node at once.
func (c *ensureCommand) queueAll(ctx context.Context, to sender, list []fleet.Target, req model.EnsureRequest) error {
	if c.queue == 0 {
		return cli.Usagef("only administrators send requests that nodes answer at once; an operator of the group or node queues one with %s --queue 1h, see muster fleet reports --kind ensure", cmp.Or(c.queued, c.Command("ensure", "TYPE", "…")))
	}
	for _, target := range list {
		if err := to.queue(ctx, target, req, c.queue); err != nil {
			return err
		}
	}

	return c.Print.Result(c.Format, ask.Ensured{ID: req.ID, Queued: names(list)}, func() {
		c.Print.Printf("queued for: %s\n", print.Some(names(list), "--json has all"))
	})
}

// names returns targets as text.
func names(list []fleet.Target) []string {
	out := make([]string, len(list))
	for i, target := range list {
		out[i] = target.String()
	}

	return out
}

// complete fills in the fields that a request lacks.
func (c *ensureCommand) complete(r model.EnsureRequest) model.EnsureRequest {
	r.ID = cmp.Or(c.From, r.ID, ksuid.New().String())
	r.Noop, r.Check = cli.Noop(r.Noop || c.noop), r.Check || c.check

	return r
}

// send sends the request to some targets, and prints the answers as they come. Its time begins
// now unless its document has one.
func (c *ensureCommand) send(ctx context.Context, by sender, req model.EnsureRequest, part string, list []fleet.Target, known RequestNodes) (*ask.Ensured, error) {
	if req.Expires.IsZero() {
		req.Expires = time.Now().Add(c.timeout).UTC()
	}
	limit, done := context.WithTimeout(ctx, c.timeout+c.grace)
	defer done()
	line := c.Print.Progress()
	defer line.Clear()
	onAnswer := func(r model.EnsureResponse) {
		if !c.IsDocument() && !c.together {
			line.Clear()
			c.printAnswer(r.Node, r)
		}
	}
	completer := Completer{Store: by.Store, Protocol: model.ProtocolEnsureResponse, Log: c.Log, OnAnswer: onAnswer}
	ensurer := ask.Ensurer{Asker: by.asker(req), Nodes: known, OnAnswer: onAnswer, Reported: completer.Follow(req.ID),
		OnProgress: func(p ask.Progress) {
			line.Show("%s%d of %s answered, %d working", part, p.Finished, print.Count(p.Expected, "node"), p.Acknowledged-p.Finished)
		},
		OnSilent: func(nodes []string) { line.Show("no answer yet from %s", print.Some(nodes, "and others")) },
	}
	out, err := ensurer.Ensure(limit, list, req)
	completer.Complete(ctx, req.ID, out)

	return out, err
}

// matched returns what tells people how many nodes match, nil for documents.
func (c *ensureCommand) matched() func(of, known int) {
	if c.IsDocument() {
		return nil
	}

	return func(of, known int) { c.Print.Remark("%d of %d nodes match", of, known) }
}

// printAnswer prints an answer, which is that of nodes.
func (c *ensureCommand) printAnswer(nodes string, r model.EnsureResponse) {
	text := c.Print.Word(string(view.OutcomeOf(r)))
	summary := view.DescribeAnswer(r)
	if c.together {
		summary = inWords(summary, output(r.State, "stderr"))
	}
	if ask.Failed(r) && r.Phase != model.EnsureCancelled && c.place.Line > 0 {
		summary = c.place.String() + ": " + summary
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

// inWords returns what came of a command as whoever typed it says it: nobody declared a state, and what it printed
// follows in lines of its own.
func inWords(summary, stderr string) string {
	summary = strings.TrimPrefix(summary, model.ErrDesiredStateFailed.Error()+": ")
	if strings.HasPrefix(summary, "exit code ") {
		return strings.TrimSuffix(strings.Replace(summary, ", expected 0", "", 1), ": "+strings.TrimRight(stderr, "\r\n"))
	}
	if rest, is := strings.CutPrefix(summary, "Would have "); is {
		return "would have " + rest
	}

	return summary
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

// conclusion returns how the result is shown.
func (c *ensureCommand) conclusion(id string) Conclusion {
	out := Conclusion{
		Printer: c.Print, Format: c.Format, Did: "answered", Near: c.near, States: c.HasBatches(),
		ID: id, Resume: c.Command("ensure", "resume", id), Cancel: c.Command("ensure", "cancel", id),
		// Properties may be long, and secret.
		Continue: "the same command with --continue " + id,
	}
	if c.together {
		out.Continue = c.CommandLine("continue", id, "resume")
		out.Resume, out.Cancel = c.Command("exec", "--resume", id), c.Command("exec", "--cancel", id)
		out.Show = c.printGrouped
	}

	return out
}

// ensureResults says where those of nodes are found that did not finish.
func ensureResults(r *ask.Ensured) string {
	if len(r.Unfinished) == 1 {
		return " (it goes on, for the result see: muster fleet reports --kind ensure --node " + r.Unfinished[0] + ")"
	}

	return " (they go on, for the results see: muster fleet reports --kind ensure)"
}
