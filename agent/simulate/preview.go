package simulate

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Preview answers a preview request at once, whoever signed it: what the manifest changes of
// the one that is assigned under its name. A node that fails would fail.
func (n *Node) Preview(ctx context.Context, data []byte, respond func(model.EnsureResponse)) {
	var req model.PreviewRequest
	content, err := signed.Content(data)
	if err == nil {
		err = json.Unmarshal(content, &req)
	}
	response := model.EnsureResponse{Protocol: model.ProtocolPreviewResponse, ID: req.ID, Phase: model.EnsureFailed, Node: n.Node}
	var after *Manifest
	if err == nil {
		after, err = n.fleet.o.Load(ctx, model.Entry{Key: model.Key(model.GroupFamily(model.GroupAll), req.Name), Name: req.Name, Value: []byte(req.Value)})
	}
	if err != nil {
		response.Error = err.Error()
		respond(response)
		return
	}
	response.Plan = n.plan(req.Name, after)
	if response.Plan.OK() {
		response.Phase = model.EnsureDone
	}
	respond(response)
}

// inForce returns the manifest that is assigned under a name, nil for none.
func (n *Node) inForce(name string) *Manifest {
	if all := n.manifests.Load(); all != nil {
		return (*all)[name]
	}

	return nil
}

// plan returns what a manifest changes on the node.
func (n *Node) plan(name string, after *Manifest) *model.Plan {
	p, failing := &model.Plan{}, n.failing(after)
	for i, changes := range n.fleet.compared.between(n.inForce(name), after) {
		r := &after.Resources[i]
		t := model.Transaction{
			Protocol: model.ProtocolTransaction, Type: r.Ref.Type, Name: r.Ref.Name, Alias: r.Alias, RequestedEnsure: r.Ensure, Source: r.Source, Noop: true,
		}
		switch {
		case i == failing:
			t.Failed, t.Errors = true, []string{n.Error}
		case changes != nil:
			t.Changed, t.Changes = true, slices.Clone(changes)
		}
		if p.Counts.Add(&t); t.Failed || t.Changed {
			p.Transactions = append(p.Transactions, t)
		}
	}
	p.Counts.Unique = len(after.Resources)
	b, _ := json.Marshal(p) // what is received again
	p.Digest = model.DigestOf(b)

	return p
}
