package view

import (
	"iter"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// Limits of the returned runs and events of a node.
const (
	maxRunsOfNode   = 50
	maxEventsOfNode = 100
)

// Nodes returns a page of nodes. The error is the error of the target expression, a *targets.Error, or of
// reading the facts that it needs.
func (f *Fleet) Nodes(q NodeQuery) (NodePage, error) {
	progress := f.Progress()
	all, err := f.nodes.List(q)
	if err != nil {
		return NodePage{}, err
	}

	return NodePage{Progress: progress, Rows: all.Rows, Known: all.Known, Matching: all.Matching, States: all.States, Undecided: all.Undecided, Warnings: all.Warnings}, nil
}

// All yields the known nodes by name, without their manifests.
func (f *Fleet) All() iter.Seq[*model.Node] { return f.nodes.All() }

// NodeNames returns the sorted names of the nodes.
func (f *Fleet) NodeNames() []string { return f.nodes.NodeNames() }

// Node returns the data of a node, and whether it is known.
func (f *Fleet) Node(name string) (NodeDetail, bool) {
	n, is := f.nodes.Node(name)
	if !is {
		return NodeDetail{}, false
	}
	out := NodeDetail{Progress: f.progress(name), Node: n}
	out.Runs, out.Events = f.log.OfNode(name, maxRunsOfNode, maxEventsOfNode)

	return out, true
}

// State returns the state of a node, and whether it is known.
func (f *Fleet) State(name string) (model.Node, bool) { return f.nodes.State(name) }

// Select returns the nodes that a target expression selects, all for an empty one, without their Manifests.
// It returns the errors of Nodes.
func (f *Fleet) Select(on string) (targets.Selection, error) { return f.nodes.Select(on) }

// Events returns a page of events, newest first.
func (f *Fleet) Events(q EventQuery) EventPage {
	out := EventPage{Progress: f.Progress()}
	out.Events, out.More = f.log.Page(q)

	return out
}

// Follow returns a channel with the events after q.After, or for 0 the new events, in order, until cancel. It
// closes the channel if the reader is too slow or if too many events are already waiting. The reader then
// requests a page again.
func (f *Fleet) Follow(q EventQuery) (events <-chan Event, cancel func()) { return f.log.Follow(q) }

// Runs returns runs, newest first.
func (f *Fleet) Runs(q EventQuery) []RunRow { return f.log.Runs(q) }

// Requests returns the answered requests, newest first.
func (f *Fleet) Requests() []RequestRow { return f.log.Requests() }

// Totals returns the counts since the view began.
func (f *Fleet) Totals() Totals { return f.log.Totals() }
