package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/choria-io/fisk"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// previewCommand implements muster fleet preview.
type previewCommand struct {
	pushCommand
}

// addPreview adds muster fleet preview.
func addPreview(env *cli.Env, parent *fisk.CmdClause) {
	c := &previewCommand{pushCommand: pushCommand{Env: env}}
	cmd := parent.Command("preview", "Show what a push would change on the nodes, without it")
	cmd.HelpLong("Shows what the manifest would change on the nodes, and equal plans once. It assigns, changes and reports nothing, but the guards of commands (onlyif, unless) run, as in noop. It takes the arguments of muster fleet push, and --on. Exit code 0: every node answered, and no resource would fail.\n\n" +
		"  muster fleet preview --group web ./site/\n" +
		"  muster fleet preview --on 'labels.rack == \"a3\"' sshd.yaml\n" +
		"  muster fleet push --group web --preview ./site/           shows it, and asks")
	cmd.Arg("source", "File, directory, or - for standard input").Required().StringVar(&c.source)
	cmd.Flag("name", "Name of the assignment, which it would replace (default: the name of the file or directory)").PlaceHolder("NAME").StringVar(&c.name)
	cmd.Flag("bundle", "Send a bundle, even of a single manifest; for large manifests").UnNegatableBoolVar(&c.bundle)
	cmd.Flag("timeout", "Time limit; guards are ended after it").Default("2m").DurationVar(&c.timeout)
	cli.OldFlag(cmd, "within").DurationVar(&c.timeout)
	c.AddTargets(env, cmd)
	c.AddOn(cmd)
	c.remedy = "give --node NODE, --group GROUP, --on EXPR or --all"
	c.addTerms(cmd)
	c.AddSignKey(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *previewCommand) run(ctx context.Context) error {
	if _, _, err := c.Compile(c.Env); err != nil {
		return err
	}
	if c.timeout < time.Second || c.timeout > model.MaxPreview {
		return cli.Usagef("--timeout must be at least 1s, and at most %s", model.MaxPreview)
	}
	push, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	to, err := c.open(ctx, c.Env, &c.Signing, func(s *Store) error { return s.KV.Ready(ctx) }, NeedNodes)
	if err != nil {
		return err
	}
	push.Targets = to.targets
	WarnUnknown(c.Log, to.targets, to.known)
	if !c.IsDocument() {
		to.remark(c.Print)
	}
	found, err := c.requestPreview(ctx, to, push, c.timeout)
	if found == nil {
		return err
	}
	err = errors.Join(err, c.Print.Result(c.Format, found, func() { PrintPreview(c.Print, found) }))

	return errors.Join(err, PreviewError(found), to.undecided)
}

// confirmPreview shows the changes of a push, and asks. With --yes it does not ask. It returns an error if a resource would
// fail, or if none of the known nodes answered.
func (c *pushCommand) confirmPreview(ctx context.Context, to opened, push assign.Push) error {
	found, err := c.requestPreview(ctx, to, push, min(c.timeout, model.MaxPreview))
	if err != nil {
		return fmt.Errorf("not pushed: %w", err)
	}
	PrintPreview(c.Print, found)
	why := fmt.Sprintf("the preview shows %s for %s", print.Count(len(found.Groups), "plan"), print.Count(found.Nodes(), "node"))
	if bad := PreviewError(found); bad != nil {
		why = bad.Error()
		isUnanswered := len(found.Groups) == 0 && len(found.Missing)+len(found.Unfinished) > 0
		if (found.WouldFail() > 0 || isUnanswered) && (c.yes || !c.CanAsk()) {
			return fmt.Errorf("not pushed: %s; to push anyway, omit --preview", why)
		}
		if c.yes {
			c.Log.Warn("pushed without knowing the changes on all nodes", "preview", why)
		}
	}
	if c.yes {
		return nil
	}

	return c.Confirm("not pushed", why)
}

const (
	// PreviewGrace is the additional time in which nodes report that they did not finish in time.
	PreviewGrace = 3 * time.Second
	// removing limits the removal of a bundle.
	removing = 5 * time.Second
)

// requestPreview requests the plans of the targets of a push, until all nodes have answered or the time is over. It stores
// the bundle of the push for that time. With an error it returns nil or the answers so far.
func (c *pushCommand) requestPreview(ctx context.Context, to opened, push assign.Push, within time.Duration) (out *ask.PreviewResult, err error) {
	if err := requests.New(to.store.KV).CheckRequests(ctx, kvstore.VerbPreview); err != nil {
		return nil, err
	}
	value, digest, bundle, err := push.Value(ctx)
	if bundle != nil {
		defer os.Remove(bundle.Name()) // the system removes a remaining file
		defer bundle.Close()
	}
	if err != nil {
		return nil, err
	}
	req := model.PreviewRequest{
		Protocol: model.ProtocolPreviewRequest, ID: ksuid.New().String(), Expires: time.Now().Add(within).UTC(),
		Name: push.Name, Value: string(value),
	}
	if bundle != nil {
		remove, err := StoreBundle(ctx, to.store.KV, c.Log, req.ID, digest, bundle)
		if err != nil {
			return nil, err
		}
		defer remove()
	}
	line := c.Print.Progress()
	defer line.Clear()
	request := ask.Request{
		ID: req.ID, Network: NewPreviewAsker(to.store.KV, to.signer, req, c.Log), Targets: push.Targets, Known: to.known, Timeout: within + PreviewGrace,
		OnProgress: func(_ string, p ask.Progress) {
			line.Show("%d of %s previewed, %d working", p.Finished, print.Count(p.Expected, "node"), p.Acknowledged-p.Finished)
		},
		OnSilent: func(nodes []string) { line.Show("no answer yet from %s", print.Some(nodes, "and others")) },
	}
	answers, err := request.Send(ctx)
	if errors.Is(err, model.ErrTooLarge) && bundle == nil {
		err = fmt.Errorf("%w\npreview it as a bundle, which has no size limit: add --bundle", err)
	}
	if err != nil && len(answers.Answers) == 0 {
		return nil, err
	}

	return ask.MergePreviews(answers), errors.Join(err, context.Cause(ctx))
}

// StoreBundle stores the bundle of a preview. remove removes it, also after the end of ctx.
func StoreBundle(ctx context.Context, store *kvstore.Store, log *slog.Logger, id, digest string, bundle io.ReadSeeker) (remove func(), err error) {
	bundles := kvstore.NewContent(store)
	if err := bundles.PutPreviewBundle(ctx, id, digest, bundle); err != nil {
		return nil, err
	}

	return func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), removing)
		defer done()
		if err := bundles.RemovePreviewBundle(ctx, id, digest); err != nil {
			log.Warn("cannot remove the bundle of the preview; a later preview removes it", "error", err)
		}
	}, nil
}

// PrintPreview prints the plans, equal ones once.
func PrintPreview(to print.Printer, p *ask.PreviewResult) {
	for _, g := range p.Groups {
		to.Printf("%s (%s): %s\n", print.Count(len(g.Nodes), "node"), print.Text(print.Some(g.Nodes, "--json has all")), previewHeadline(g))
		if g.Plan != nil {
			printPlan(to, g.Plan)
		}
	}
}

// previewHeadline describes the outcome of a plan.
func previewHeadline(g ask.Group) string {
	text := string(g.Outcome)
	switch {
	case g.Error != "":
		return text + ": " + print.Text(print.OneLine(g.Error))
	case g.Outcome == ask.Inactive:
		return text + ": " + print.Text(print.OneLine(g.Plan.Inactive))
	}
	c := g.Plan.Counts
	if g.Outcome == ask.WouldFail && c.Total > 0 {
		text += fmt.Sprintf(": %d of %s", c.Failed+c.Unmet+c.NotRun, print.Count(c.Total, "resource"))
	}
	switch {
	case g.Outcome == ask.WouldFail && c.Changed > 0:
		text += fmt.Sprintf(", %d would change", c.Changed)
	case g.Outcome == ask.WouldChange:
		text = fmt.Sprintf("%d of %s would change", c.Changed, print.Count(c.Total, "resource"))
	}

	return text
}

// printPlan prints the resources of a plan that are not stable.
func printPlan(to print.Printer, p *model.Plan) {
	for _, text := range p.Errors {
		to.Printf("  %s\n", print.Text(print.OneLine(text)))
	}
	for i := range p.Transactions {
		t := &p.Transactions[i]
		to.Printf("  %s\n", print.Text(t.Ref().String()+": "+print.OneLine(view.DescribeTransaction(t))))
		to.Changes(t)
	}
	if p.Cut {
		to.Printf("  … the plan is cut because it is long; for all of it run muster apply --noop on one node\n")
	}
}

// PreviewError returns the error of a preview with problems, nil for none.
func PreviewError(p *ask.PreviewResult) error {
	var parts []string
	if count := p.WouldFail(); count > 0 {
		parts = append(parts, print.Count(count, "node")+" would fail, or cannot tell")
	}
	parts = append(parts, listed(nodeList{"still working: ", p.Unfinished}, nodeList{"no answer from: ", p.Missing})...)
	switch {
	case p.OK():
		return nil
	case len(parts) == 0:
		return errors.New("no node answered, and no known node matches (see muster fleet nodes)")
	default:
		return errors.New(strings.Join(parts, ", "))
	}
}
