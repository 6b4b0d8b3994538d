package fleetcmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// backend performs the actions of dashboard users on NATS.
type backend struct {
	store  *kvstore.Store
	signer *assign.Signing
	// signsPreviews signs previews. Previews run guards on nodes, from text that a user entered or that is in
	// the bucket.
	signsPreviews bool
	log           *slog.Logger
	// paused returns the control key that pauses a node, or an empty string.
	paused func(node string) string
	// permitted checks whether requests reach nodes.
	permitted *permitted
}

// unsigned is the note for a change that replaces a signed value without a key.
const unsigned = "the previous value was signed and this one is not: nodes with trust.keys refuse it. Start muster fleet serve with --sign-key FILE"

func noteOf(w PauseResult) string {
	if w.Unsigned {
		return unsigned
	}

	return ""
}

// Pause writes the pause of a family.
func (b backend) Pause(ctx context.Context, family string, p model.Pause) (string, error) {
	w, err := b.pauses(p.By, func(by Pauses) (PauseResult, error) { return by.Begin(ctx, family, p) })

	return noteOf(w), err
}

// Resume ends the pause of a family.
func (b backend) Resume(ctx context.Context, family, author string) (string, error) {
	from := ""
	if t, _, err := fleet.ParseKey(model.Key(family, "x")); err == nil && t.Node != "" {
		from = b.paused(t.Node)
	}
	w, err := b.pauses(author, func(by Pauses) (PauseResult, error) { return by.End(ctx, family, from) })

	return noteOf(w), err
}

// pauses writes or removes a pause. If NATS does not answer, the error states whether the change may have
// been written.
func (b backend) pauses(author string, write func(Pauses) (PauseResult, error)) (PauseResult, error) {
	if err := b.store.Away(); err != nil {
		return PauseResult{}, fmt.Errorf("%w (%w): nothing was written", ask.ErrAway, err)
	}
	w, err := write(Pauses{Bucket: kvstore.NewControl(b.store).By(author), Signer: b.signer})
	switch {
	case err == nil, !kvstore.IsOutage(err):
		return w, err
	case w.Sent:
		return w, fmt.Errorf("NATS does not answer: it may have been written, see the audit (%w)", err)
	default:
		return w, fmt.Errorf("NATS does not answer: nothing was written (%w)", err)
	}
}

// CheckRequests returns why requests of a kind cannot reach nodes, or nil.
func (b backend) CheckRequests(k ask.Kind) error {
	switch k {
	case ask.Run:
		return b.permitted.check(kvstore.VerbRun)
	case ask.Preview:
		return b.permitted.check(kvstore.VerbPreview)
	default:
		return nil
	}
}

// Run sends a run request to nodes in the name of a sender.
func (b backend) Run(ctx context.Context, from model.Sender, nodes []model.Node, req model.RunRequest, answered func(model.EnsureResponse)) (*ask.Ensured, error) {
	request := ask.Request{
		ID: req.ID, Network: RunAsker(b.store, b.signer, b.log, from, req, 0), Targets: targetsOf(nodes), Known: nodes, OnAnswer: answered,
		Protocol: model.ProtocolRunResponse, Reports: ReportsOf(b.store, req.ID, nil),
		OnUnread: func(err error) { b.log.Debug("cannot read the reports of the request", "error", err) },
	}

	return request.Send(ctx)
}

// Preview asks nodes for the changes of an assignment.
func (b backend) Preview(ctx context.Context, nodes []model.Node, req model.PreviewRequest, answered func(model.EnsureResponse)) (*ask.PreviewResult, error) {
	limit, done := context.WithDeadline(ctx, req.Expires.Add(PreviewGrace))
	defer done()
	remove, err := b.bundle(limit, req)
	if err != nil {
		return nil, err
	}
	defer remove()
	signer := b.signer
	if !b.signsPreviews {
		signer = nil
	}
	request := ask.Request{ID: req.ID, Network: NewPreviewAsker(b.store, signer, req, b.log), Targets: targetsOf(nodes), Known: nodes, OnAnswer: answered}
	answers, err := request.Send(limit)

	return ask.MergePreviews(answers), err
}

// bundle stores a copy of the bundle until the preview ends. Without permission to store it, nodes read the
// bundle of the assignment, which may be removed before they do.
func (b backend) bundle(ctx context.Context, req model.PreviewRequest) (remove func(), err error) {
	v, problems := document.DecodeAssignedContent(model.Key(model.GroupFamily(model.GroupAll), req.Name), []byte(req.Value))
	if problems != nil || v.Assignment.Bundle == "" || !b.store.Places().InUse().IsOwn() {
		return func() {}, nil // nodes report problems
	}
	digest := v.Assignment.Bundle
	from, err := kvstore.NewContent(b.store).GetBundle(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	file, err := os.CreateTemp("", "muster-preview-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name()) // the system cleans up after a failed removal
	defer file.Close()
	if _, err := io.Copy(file, from); err != nil {
		return nil, err
	}

	return StoreBundle(ctx, b.store, b.log, req.ID, digest, file)
}

func targetsOf(nodes []model.Node) []fleet.Target {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Node
	}

	return fleet.Targets(names, nil, false)
}
