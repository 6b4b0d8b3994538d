package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/preview"
	"github.com/musterfleet/muster/fleet/request"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
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
func (d *Desk) preview(ctx context.Context, e *entry, nodes []model.Node) error {
	// Nodes report nothing of a preview, so its id needs no name.
	asked := model.PreviewRequest{
		Protocol: model.ProtocolPreviewRequest, ID: ksuid.New().String(), Expires: d.o.Now().Add(e.Within).UTC(), Name: e.Previewed.Name, Value: e.Previewed.Value,
	}
	found, err := d.o.Doer.Preview(ctx, nodes, asked, func(r model.EnsureResponse) { d.set(e, Result{Node: r.Node, State: request.StateRunning}) })
	if found != nil {
		d.planned(e, found)
	}

	return asEnded(ctx, err)
}

// planned notes the plans, and what they come to on every node.
func (d *Desk) planned(e *entry, found *preview.Preview) {
	for _, g := range found.Groups {
		state := request.StateDone
		if g.Outcome == preview.WouldFail || g.Outcome == preview.NotKnown {
			state = request.StateFailed
		}
		for _, node := range g.Nodes {
			d.set(e, Result{Node: node, State: state, Text: cut(cmp.Or(g.Error, string(g.Outcome)))})
		}
		if strings.Contains(g.Error, "not signed") {
			d.note(e, unsignedPreview)
		}
	}
	for _, node := range found.Missing {
		d.set(e, Result{Node: node, State: request.StateUnreachable, Text: "has not answered"})
	}
	for _, node := range found.Unfinished {
		d.set(e, Result{Node: node, State: request.StateExpired, Text: "did not come to an end in time"})
	}
	kept := keptOf(found.Groups)
	d.change(e, func() { e.Plans, e.MorePlans = kept, len(found.Groups)-len(kept) })
}

// keptOf returns the first plans, without those that are too long.
func keptOf(all []preview.Group) []preview.Group {
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

// RevisionOf returns what is previewed of a revision of an assignment, the newest for 0. The error is a *Refusal.
func RevisionOf(key string, all []model.Entry, revision uint64) (*Previewed, error) {
	for _, e := range slices.Backward(all) {
		if revision != 0 && e.Revision != revision {
			continue
		}
		value, err := signed.Content(e.Value)
		_, name, _ := model.SplitKey(key)
		switch {
		case err != nil:
			return nil, refuse("%v", err)
		case e.Deleted || e.Refused != "":
			return nil, refuse("revision %d of %s assigns nothing", e.Revision, key)
		}

		return &Previewed{Key: key, Revision: e.Revision, Name: name, Value: string(value)}, nil
	}
	if revision == 0 {
		return nil, refuse("the bucket has no assignment %s", key)
	}

	return nil, refuse("the bucket does not have revision %d of %s any more", revision, key)
}
