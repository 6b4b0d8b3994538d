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

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// PreviewRequest is what nodes are asked.
type PreviewRequest struct {
	// Push is what would be assigned, to its targets.
	Push assign.Push
	// Known are the nodes of the fleet.
	Known  []model.Node
	Signer *assign.Signing
	Within time.Duration
}

const (
	// PreviewGrace is how long nodes may take to tell that their time is over.
	PreviewGrace = 3 * time.Second
	// removing is how long the removal of a bundle may take.
	removing = 5 * time.Second
)

// RequestPreview asks the nodes of the targets for their plans until all have answered or the time is
// over. The bundle of what is pushed is stored for as long as that takes. Beside an error the
// preview is nil, or what was answered until then.
func RequestPreview(ctx context.Context, env *cli.Env, store *Store, q PreviewRequest) (out *ask.PreviewResult, err error) {
	if err := requests.New(store.KV).CheckRequests(ctx, kvstore.VerbPreview); err != nil {
		return nil, err
	}
	value, digest, bundle, err := q.Push.Value(ctx)
	if bundle != nil {
		defer os.Remove(bundle.Name()) // the system clears one that stays
		defer bundle.Close()
	}
	if err != nil {
		return nil, err
	}
	req := model.PreviewRequest{
		Protocol: model.ProtocolPreviewRequest, ID: ksuid.New().String(), Expires: time.Now().Add(q.Within).UTC(),
		Name: q.Push.Name, Value: string(value),
	}
	if bundle != nil {
		remove, err := StoreBundle(ctx, store.KV, env.Log, req.ID, digest, bundle)
		if err != nil {
			return nil, err
		}
		defer remove()
	}
	line := env.Print.Progress()
	defer line.Clear()
	request := ask.Request{
		ID: req.ID, Network: NewPreviewAsker(store.KV, q.Signer, req, env.Log), Targets: q.Push.Targets, Known: q.Known, Timeout: q.Within + PreviewGrace,
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
			log.Warn("a bundle is left, which a later preview removes", "error", err)
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

// previewHeadline is what a plan comes to.
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

// printPlan prints what of a plan is no stable resource.
func printPlan(to print.Printer, p *model.Plan) {
	for _, text := range p.Errors {
		to.Printf("  %s\n", print.Text(print.OneLine(text)))
	}
	for i := range p.Transactions {
		t := &p.Transactions[i]
		to.Printf("  %s\n", print.Text(t.Ref().String()+": "+print.OneLine(changeSummary(t))))
		to.Changes(t)
	}
	if p.Cut {
		to.Printf("  … the plan is long: something of it is left out, see one node by muster apply --noop there\n")
	}
}

// changeSummary is what would come of a resource.
func changeSummary(t *model.Transaction) string {
	switch {
	case len(t.Errors) > 0:
		return strings.Join(t.Errors, "; ")
	case len(t.UnmetRequirements) > 0:
		var refs []string
		for _, ref := range t.UnmetRequirements {
			refs = append(refs, ref.String())
		}
		return "would not run, it requires " + strings.Join(refs, ", ")
	case t.SkipReason != "":
		return t.SkipReason
	case t.NoopMessage != "":
		return t.NoopMessage
	}
	var all []string
	for _, c := range t.Changes {
		all = append(all, c.Message)
	}

	return strings.Join(all, ", ")
}

// PreviewError returns why a preview is none that all is well with, nil where it is.
func PreviewError(p *ask.PreviewResult) error {
	var parts []string
	if count := p.WouldFail(); count > 0 {
		parts = append(parts, print.Count(count, "node")+" would fail, or cannot tell")
	}
	for _, more := range []struct {
		text  string
		nodes []string
	}{{"still working: ", p.Unfinished}, {"no answer from: ", p.Missing}} {
		if len(more.nodes) > 0 {
			parts = append(parts, more.text+print.Some(more.nodes, "--json has all"))
		}
	}
	switch {
	case p.OK():
		return nil
	case len(parts) == 0:
		return errors.New("no node answered, and no known node matches (see muster fleet nodes)")
	default:
		return errors.New(strings.Join(parts, ", "))
	}
}
