package web

import (
	"context"
	"encoding/json"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// Model is the fleet as it is known; *view.Fleet is one. Its methods may be called from several
// goroutines, and return what nobody changes any more.
type Model interface {
	// Progress returns how complete the view is.
	Progress() view.Progress
	Overview() view.Overview
	// Nodes returns a page of nodes. The error is that of the target expression: a
	// *target.Error, which names the column and the remedy.
	Nodes(q view.NodeQuery) (view.NodePage, error)
	// Node, Manifest and Run report whether it is known.
	Node(name string) (view.NodeDetail, bool)
	Manifests() []view.ManifestRow
	Manifest(q view.ManifestQuery) (view.ManifestDetail, bool)
	Runs(q view.EventQuery) []view.RunRow
	Events(q view.EventQuery) view.EventPage
	Requests() []view.RequestRow
	// Request returns a request with the nodes that did not answer, and whether it is known: the run with an id, or
	// what is no run, and the run where there is nothing else.
	Request(id string, run bool) (view.RequestDetail, bool)
	// Changes returns a channel that receives when something may have changed, at most a few
	// times a second, until cancel. Who does not receive misses nothing but the time of it.
	Changes() (changed <-chan struct{}, cancel func())
	// Follow returns a channel with the events of higher Seq than q.After, or for 0 those from now
	// on, in their order, until cancel. It is closed when the reader is too slow: it then asks for
	// a page again.
	Follow(q view.EventQuery) (events <-chan view.Event, cancel func())
}

// Source is asked when a page needs it. The errors wrap model.ErrNotFound where there is none.
type Source interface {
	// Run returns a run with its transactions, read from the stream.
	Run(ctx context.Context, node, id string) (view.RunDetail, error)
	// Answers returns the answers of nodes to a request, read from the stream.
	Answers(ctx context.Context, r view.RequestDetail) (view.Answers, error)
	// Facts returns the document of the facts of a node.
	Facts(ctx context.Context, node string) (json.RawMessage, error)
	// History returns the revisions of an assignment that the bucket has, the oldest first.
	History(ctx context.Context, key string) ([]model.Entry, error)
	// Assigned returns the newest revisions of all assignments without their values, removals included, the
	// newest first, and whether the bucket has others.
	Assigned(ctx context.Context) (all []model.Entry, more bool, err error)
	// Control returns the newest revisions of what operators wrote about nodes and groups, the newest
	// first, and whether the bucket has others.
	Control(ctx context.Context) (all []model.Entry, more bool, err error)
	// Registrations returns what nodes registered.
	Registrations(ctx context.Context) ([]registration.Registration, error)
}
