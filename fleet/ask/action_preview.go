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

// maxPlans is how many different plans an action keeps, maxPlanBytes how long they may be together: nodes
// write them, with 64 KiB each if they are those of muster.
const (
	maxPlans     = 30
	maxPlanBytes = 2 << 20
)

// tooLong is why a plan is not kept.
const tooLong = "the plan is too long to be kept here"

// unsignedPreview is for whoever previews where nodes refuse that.
const unsignedPreview = "nodes with trust.keys preview only what a key they trust has signed, and this server signs no previews, or by another key: use muster fleet preview --sign-key FILE; or see --sign-previews of muster fleet serve"

// preview asks nodes for their plans.
func (e *execution) preview(ctx context.Context) error {
	r := e.record
	// Nodes report nothing of a preview, so its id needs no name.
	asked := model.PreviewRequest{
		Protocol: model.ProtocolPreviewRequest, ID: ksuid.New().String(), Expires: e.Now().Add(r.Within).UTC(), Name: r.Previewed.Name, Value: r.Previewed.Value,
	}
	found, err := e.Backend.Preview(ctx, e.nodes, asked, func(a model.EnsureResponse) { e.set(Result{Node: a.Node, State: StateRunning}) })
	if found != nil {
		e.planned(ctx, found)
	}

	return err
}

// planned notes the plans, and what they come to on every node.
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
			e.set(Result{Node: node, State: StateRunning, Text: "had not come to an end when this was ended"})
			continue
		}
		e.set(Result{Node: node, State: StateExpired, Text: "did not come to an end in time"})
	}
	kept := keptOf(found.Groups)
	e.registry.change(func() { e.record.Plans, e.record.MorePlans = kept, len(found.Groups)-len(kept) })
}

// keptOf returns the first plans, without those that are too long.
func keptOf(all []Group) []Group {
	out := slices.Clone(all[:min(len(all), maxPlans)]) // what is behind them is not kept by that
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
