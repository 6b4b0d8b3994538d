package webfleet

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"

	"github.com/musterfleet/muster/model"
)

// Backend does with a Fleet what operators do: it takes effect on its nodes at once.
type Backend struct {
	Fleet *Fleet
	// Deaf has nothing take effect on nodes, and Held, where it is not nil, has requests wait until it is closed.
	Deaf bool
	Held chan struct{}
	// Away is why NATS cannot be reached, nil where it can.
	Away error
	// Denied is the reason why requests are refused, nil when permitted. Unpermitted are the kinds that the
	// permissions limit to some nodes. Err is the error of all calls.
	Denied, Err error
	Unpermitted map[ask.Kind]error

	mu sync.Mutex
	// done records the actions.
	done []string
}

// Done returns the actions as text.
func (b *Backend) Done() []string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return append([]string{}, b.done...)
}

func (b *Backend) note(format string, args ...any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Err == nil {
		b.done = append(b.done, fmt.Sprintf(format, args...))
	}

	return b.Err
}

// Pause pauses the nodes of a family.
func (b *Backend) Pause(_ context.Context, family string, p model.Pause) (string, error) {
	if err := b.note("pause %s by %s: %s", family, p.By, p.Reason); err != nil || b.Deaf {
		return "", err
	}
	b.write(family, &model.Paused{Until: p.Until, By: p.By, Reason: p.Reason, At: p.At, From: model.Key(family, model.ControlPause)})

	return "", nil
}

// Resume ends the pause of a family.
func (b *Backend) Resume(_ context.Context, family, author string) (string, error) {
	key := model.Key(family, model.ControlPause)
	is := false
	for _, n := range b.Fleet.get().Nodes {
		is = is || n.Paused != nil && n.Paused.From == key
	}
	if !is {
		return "", fmt.Errorf("%s: %w", key, model.ErrNotFound)
	}
	if err := b.note("resume %s by %s", family, author); err != nil || b.Deaf {
		return "", err
	}
	b.write(family, nil)

	return "", nil
}

// write has the nodes of a family be paused by its key, or by nothing.
func (b *Backend) write(family string, p *model.Paused) {
	t, _, _ := fleet.ParseKey(model.Key(family, "x"))
	b.Fleet.Change(func(data *Data) {
		nodes := append([]model.Node{}, data.Nodes...)
		for i, n := range nodes {
			if t.Includes(n.NodeState) {
				nodes[i].Paused = p
			}
		}
		data.Nodes = nodes
	})
}

// CheckRequests returns why no node can be asked.
func (b *Backend) CheckRequests(k ask.Kind) error { return cmp.Or(b.Denied, b.Unpermitted[k]) }

// Run runs the assignments on the nodes. Every manifest keeps the state of its last run.
func (b *Backend) Run(ctx context.Context, _ model.Sender, nodes []model.Node, req model.RunRequest, answered func(model.EnsureResponse)) (*ask.Ensured, error) {
	if err := b.note("run %d nodes, %v, noop %v, %s", len(nodes), req.Manifests, req.Noop, req.ID); err != nil {
		return nil, err
	}
	if b.Held != nil {
		select {
		case <-b.Held:
		case <-ctx.Done():
		}
	}
	out := &ask.Ensured{}
	for _, n := range nodes {
		if n.Silent || n.Stopped() {
			out.Missing = append(out.Missing, n.Node)
			continue
		}
		r := model.EnsureResponse{Protocol: model.ProtocolRunResponse, ID: req.ID, Node: n.Node, Phase: model.EnsureDone}
		for key, m := range n.Manifests {
			r.Runs = append(r.Runs, model.RequestedRun{Manifest: key, Revision: m.Revision, RunID: "2ZfZ8kq6mXn1wVtB3rYcHd5sLpQ", Outcome: m.Outcome, Counts: m.Counts, Error: m.Error})
		}
		if model.OutcomeOf(r.Runs).IsFailure() {
			r.Phase = model.EnsureFailed
		}
		out.Answers = append(out.Answers, r)
		answered(r)
	}

	return out, nil
}

// Preview has a plan of each node: one resource would change, or would fail where the last run did.
func (b *Backend) Preview(_ context.Context, nodes []model.Node, req model.PreviewRequest, answered func(model.EnsureResponse)) (*ask.PreviewResult, error) {
	if err := b.note("preview %s on %d nodes: %s", req.Name, len(nodes), req.Value); err != nil {
		return nil, err
	}
	change := model.Transaction{Type: "file", Name: "/etc/motd", Changed: true, Noop: true, Changes: []model.Change{{Action: "store", Message: "Would have updated the content", Diff: "@@ -1 +1 @@\n-old <b>\n+new <b>\n"}}}
	same := &model.Plan{Counts: model.Counts{Total: 2, Changed: 1}, Transactions: []model.Transaction{change}, Digest: "sha256-1"}
	fails := &model.Plan{Counts: model.Counts{Total: 2, Failed: 1}, Transactions: []model.Transaction{{Type: "file", Name: "/etc/motd", Failed: true, Errors: []string{"no space left on device"}}}, Digest: "sha256-2"}
	out := &ask.Ensured{}
	for _, n := range nodes {
		if n.Silent || n.Stopped() {
			out.Missing = append(out.Missing, n.Node)
			continue
		}
		r := model.EnsureResponse{Protocol: model.ProtocolPreviewResponse, ID: req.ID, Node: n.Node, Phase: model.EnsureDone, Plan: same}
		for _, m := range n.Manifests {
			if m.Outcome == model.OutcomeFailed {
				r.Plan = fails
			}
		}
		out.Answers = append(out.Answers, r)
		answered(r)
	}

	return ask.MergePreviews(out), nil
}
