package simulate

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Previews answers preview requests of a node.
type Previews struct{ assigned *assigned }

// Preview answers a preview request immediately, with any signature: the changes from the assigned manifest
// of the name. A failing node would fail.
func (p Previews) Preview(ctx context.Context, _ *model.Sender, data []byte, respond func(model.EnsureResponse)) {
	var req model.PreviewRequest
	content, err := signed.Content(data)
	if err == nil {
		err = json.Unmarshal(content, &req)
	}
	response := model.EnsureResponse{Protocol: model.ProtocolPreviewResponse, ID: req.ID, Phase: model.EnsureFailed, Node: p.assigned.machine.Node}
	var after *Manifest
	if err == nil {
		after, err = p.assigned.load(ctx, model.Entry{Key: model.Key(model.GroupFamily(model.GroupAll), req.Name), Name: req.Name, Value: []byte(req.Value)})
	}
	if err != nil {
		response.Error = err.Error()
		respond(response)
		return
	}
	response.Plan = p.plan(req.Name, after)
	if response.Plan.OK() {
		response.Phase = model.EnsureDone
	}
	respond(response)
}

// plan returns the changes of a manifest on the node.
func (p Previews) plan(name string, after *Manifest) *model.Plan {
	m := p.assigned.machine
	out, failing := &model.Plan{}, m.failing(after)
	for i, changes := range p.assigned.compared.between(p.assigned.inForce(name), after) {
		r := &after.Resources[i]
		t := model.Transaction{
			Protocol: model.ProtocolTransaction, Type: r.Ref.Type, Name: r.Ref.Name, Alias: r.Alias, RequestedEnsure: r.Ensure, Source: r.Source, Noop: true,
		}
		switch {
		case i == failing:
			t.Failed, t.Errors = true, []string{m.errorOf(r.Ref.Type)}
		case changes != nil:
			t.Changed, t.Changes = true, slices.Clone(changes)
		}
		if out.Counts.Add(&t); t.Failed || t.Changed {
			out.Transactions = append(out.Transactions, t)
		}
	}
	out.Counts.Unique = len(after.Resources)
	b, _ := json.Marshal(out) // what is received again
	out.Digest = model.DigestOf(b)

	return out
}
