package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
)

// maxPlans is the maximum number of distinct plans of an action, and maxPlanBytes their maximum total size.
const (
	maxPlans     = 30
	maxPlanBytes = 2 << 20
)

// tooLong replaces a plan that exceeds maxPlanBytes.
const tooLong = "the plan is too long to show"

// unsignedPreview is the note if nodes reject an unsigned preview.
const unsignedPreview = "nodes with trust.keys preview only what a key they trust has signed, and this server signs no previews, or by another key: use muster fleet preview --sign-key FILE; or see --sign-previews of muster fleet serve"

// preview requests the plans of the nodes.
func (e *execution) preview(ctx context.Context) error {
	r := e.record
	// Nodes do not report previews, so the id needs no user name.
	asked := model.PreviewRequest{
		Protocol: model.ProtocolPreviewRequest, ID: ksuid.New().String(), Expires: e.Now().Add(r.Within).UTC(), Name: r.Previewed.Name, Value: r.Previewed.Value,
	}
	found, err := e.Backend.Preview(ctx, e.nodes, asked, func(a model.EnsureResponse) { e.set(Result{Node: a.Node, State: StateRunning}) })
	if found != nil {
		e.planned(ctx, found)
	}

	return err
}

// planned records the plans and the result of each node.
func (e *execution) planned(ctx context.Context, found *PreviewResult) {
	for _, g := range found.Groups {
		state := StateDone
		if g.Outcome == WouldFail || g.Outcome == NotKnown {
			state = StateFailed
		}
		for _, node := range g.Nodes {
			e.set(Result{Node: node, State: state, Text: cut(cmp.Or(g.Error, string(g.Outcome)))})
		}
		if strings.Contains(g.Error, "not signed") {
			e.note(unsignedPreview)
		}
	}
	for _, node := range found.Missing {
		e.set(silent(ctx, node))
	}
	for _, node := range found.Unfinished {
		if ctx.Err() != nil {
			e.set(Result{Node: node, State: StateRunning, Text: "still in progress when the action ended"})
			continue
		}
		e.set(Result{Node: node, State: StateExpired, Text: "did not finish in time"})
	}
	kept := keptOf(found.Groups)
	e.registry.change(func() { e.record.Plans, e.record.MorePlans = kept, len(found.Groups)-len(kept) })
}

// keptOf returns the first plans and replaces those that are too long.
func keptOf(all []Group) []Group {
	out := slices.Clone(all[:min(len(all), maxPlans)]) // releases the other plans
	left := maxPlanBytes
	for i, g := range out {
		out[i].Error = cut(g.Error)
		if g.Plan == nil {
			continue
		}
		text, err := json.Marshal(g.Plan)
		if err != nil || len(text) > left {
			out[i].Plan, out[i].Error = nil, tooLong
			continue
		}
		left -= len(text)
	}

	return out
}
