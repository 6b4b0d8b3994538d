package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/choria-io/fisk"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// fleetEnsureCommand is muster fleet ensure.
type fleetEnsureCommand struct {
	targets
	format
	within  time.Duration
	queue   time.Duration
	dryRun  bool
	request string
}

func (a *app) addFleetEnsure(ctx context.Context, parent *fisk.CmdClause) {
	c := &fleetEnsureCommand{}
	cmd := parent.Command("ensure", "Bring one resource into a state on many nodes, now")
	cmd.HelpLong("Answers are shown as they come, and the nodes that did not answer are named. Exit code 0 means that every node answered and nothing failed.\n\n" +
		"  muster fleet ensure file /etc/motd --content hello --owner root --group root --mode 0644 --all\n" +
		"  muster fleet ensure exec 'systemctl reload nginx' --in-group web --within 30s\n" +
		"  muster fleet ensure request restart.json --node web01        a request as a document")
	c.targets.addAs(cmd, "in-group")
	cmd.Flag("within", "How long nodes have; what has not begun by then is not done").Default("2m").DurationVar(&c.within)
	cmd.Flag("queue", "Leave it for nodes that do not answer, for this long; they are no failure then").PlaceHolder("DURATION").DurationVar(&c.queue)
	cmd.Flag("dry-run", "Change nothing, say what would be changed").UnNegatableBoolVar(&c.dryRun)
	c.format.add(cmd)
	a.addTypeCommands(cmd, func(t *resource.Type, properties resource.Value) error {
		encoded, err := encodeRequest(properties.Plain())
		if err != nil {
			return err
		}
		return a.fleetEnsure(ctx, c, model.EnsureRequest{Protocol: model.ProtocolEnsureRequest, Type: t.Name, Properties: encoded}, properties)
	})
	for _, name := range a.types.Names() {
		// Help of a command shows its own flags only.
		cmd.GetCommand(name).HelpLong("Say for whom with --node NODE, --in-group GROUP or --all. There are also --within, --queue, --dry-run, --json and --yaml: see muster fleet ensure --help.")
	}
	document := cmd.Command("request", "Send an ensure request that is a document, JSON or YAML")
	document.Arg("file", "A file, or - for standard input").Required().StringVar(&c.request)
	document.Action(a.operation(func() error { return a.fleetEnsureRequest(ctx, c) }))
}

// fleetEnsureRequest sends a request that is a document.
func (a *app) fleetEnsureRequest(ctx context.Context, c *fleetEnsureCommand) error {
	source, err := a.loader(nil).Fetch(ctx, cmp.Or(c.request, stdinName))
	if err != nil {
		return err
	}
	defer a.closing(source.Close)
	request, properties, err := manifest.ParseRequest(source.Name, source.Data)
	if err != nil {
		return err
	}

	return a.fleetEnsure(ctx, c, request, properties)
}

func (a *app) fleetEnsure(ctx context.Context, c *fleetEnsureCommand, request model.EnsureRequest, properties resource.Value) error {
	list, err := c.list()
	if err != nil {
		return err
	}
	if c.within < time.Second || c.queue != 0 && c.queue < time.Second || c.queue > kvstore.MaxCommandTTL {
		return usagef("--within and --queue must be at least 1s, --queue at most %s", kvstore.MaxCommandTTL)
	}
	if _, err := manifest.NewLoader(manifest.Options{Types: a.types}).DecodeOne(request.Type, properties); err != nil {
		return err
	}
	request = c.complete(request)
	store, err := a.fleet(ctx)
	if err != nil {
		return err
	}
	limit, done := context.WithTimeout(ctx, c.within)
	defer done()
	line := a.progress()
	last := fleet.Progress{}
	tell := func() {
		line.show("%d of %s answered, %d working", last.Finished, plural(last.Expected, "node"), last.Acknowledged-last.Finished)
	}
	ensurer := fleet.Ensurer{Asker: store, Nodes: store,
		OnProgress: func(p fleet.Progress) { last = p; tell() },
		OnAnswer: func(r model.EnsureResponse) {
			if c.isDocument() {
				return
			}
			line.clear()
			a.printAnswer(r)
		},
	}
	result, err := ensurer.Ensure(limit, list, request)
	line.clear()
	if err != nil {
		return err
	}

	if err := c.leave(ctx, store, result, request); err != nil {
		return err
	}

	return a.concludeEnsure(ctx, c, result)
}

// leave leaves the request for the nodes that did not answer, where that is
// asked for.
func (c *fleetEnsureCommand) leave(ctx context.Context, store *fleetStore, result *fleet.Ensured, request model.EnsureRequest) error {
	if c.queue == 0 || ctx.Err() != nil {
		return nil
	}
	for _, node := range result.Missing {
		if err := store.leave(ctx, node, request, c.queue); err != nil {
			return err
		}
	}
	result.Left, result.Missing = result.Missing, nil

	return nil
}

// complete fills in what the command knows of a request.
func (c *fleetEnsureCommand) complete(r model.EnsureRequest) model.EnsureRequest {
	if r.ID == "" {
		r.ID = ksuid.New().String()
	}
	if r.Expires.IsZero() {
		r.Expires = time.Now().Add(c.within).UTC()
	}
	r.Noop = noop(r.Noop || c.dryRun)

	return r
}

func (a *app) printAnswer(r model.EnsureResponse) {
	text := joinedBy(": ", string(fleet.EnsureOutcome(r)), printable(oneLine(fleet.EnsureSummary(r))))
	if outcome := string(fleet.EnsureOutcome(r)); strings.HasPrefix(text, outcome) {
		text = a.paintWord(outcome) + text[len(outcome):]
	}
	fmt.Fprintf(a.stdout, "%s  %s\n", printable(r.Node), text)
	if r.State != nil && hasDiff(r.State) {
		a.printChanges(r.State)
	}
}

func hasDiff(t *model.Transaction) bool {
	for _, c := range t.Changes {
		if c.Diff != "" {
			return true
		}
	}

	return false
}

// concludeEnsure names who did not answer, and makes the exit code.
func (a *app) concludeEnsure(ctx context.Context, c *fleetEnsureCommand, r *fleet.Ensured) error {
	if c.isDocument() {
		if r.Answers == nil {
			r.Answers = []model.EnsureResponse{} // a list in documents, also when it is empty
		}
		if err := a.printDocument(r, c.yaml); err != nil {
			return err
		}
	}
	failed := 0
	for _, answer := range r.Answers {
		if fleet.Failed(answer) {
			failed++
		}
	}
	finished := len(r.Answers) - len(r.Unfinished)
	summary := fmt.Sprintf("%s answered", plural(finished, "node"))
	if failed > 0 {
		summary += fmt.Sprintf(", %d failed", failed)
	}
	if len(r.Unfinished) > 0 {
		summary += ", still working: " + strings.Join(r.Unfinished, ", ")
	}
	if len(r.Missing) > 0 {
		summary += ", no answer from: " + strings.Join(r.Missing, ", ")
	}
	if len(r.Left) > 0 {
		summary += ", left for: " + strings.Join(r.Left, ", ")
	}
	switch {
	case r.OK():
		if !c.isDocument() {
			fmt.Fprintln(a.stderr, summary)
		}
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s", context.Cause(ctx), summary)
	case len(r.Answers)+len(r.Missing) == 0:
		return fmt.Errorf("no node answered, and none is known that this is for (see muster fleet nodes)")
	default:
		return fmt.Errorf("%s", summary)
	}
}
