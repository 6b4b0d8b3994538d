package api

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// ErrUnavailable is a source without a connection.
var ErrUnavailable = errors.New("NATS cannot be reached now")

// ErrBusy is a source with too many concurrent reads.
var ErrBusy = errors.New("too many read from NATS at the same time")

// Model is the known fleet, such as *view.Fleet. Its methods may be called from several goroutines. Callers must not
// change the results.
type Model interface {
	// Progress returns how complete the model is.
	Progress() view.Progress
	Overview() view.Overview
	// Nodes returns a page of nodes. The error is a *targets.Error with the column and the remedy.
	Nodes(q view.NodeQuery) (view.NodePage, error)
	// Node, Manifest and Run report whether the object is known.
	Node(name string) (view.NodeDetail, bool)
	Manifests() []view.ManifestRow
	Manifest(q view.ManifestQuery) (view.ManifestDetail, bool)
	Runs(q view.EventQuery) []view.RunRow
	Events(q view.EventQuery) view.EventPage
	Requests() []view.RequestRow
	// Request returns a request with the nodes that did not answer, and whether it is known. An id may belong to a run
	// and to another request; run selects one, and Request returns the run if there is no other.
	Request(id string, run bool) (view.RequestDetail, bool)
	// Follow returns a channel with the events after q.After, or new ones for 0, in their order, until cancel. It is
	// closed if the reader is too slow; the reader then requests a page.
	Follow(q view.EventQuery) (events <-chan view.Event, cancel func())
}

// Source reads data that the model does not hold. The errors wrap model.ErrNotFound for missing data, and ErrUnavailable
// or ErrBusy if it limits concurrent reads.
type Source interface {
	// Run returns a run with its transactions, read from the stream.
	Run(ctx context.Context, node, id string) (view.RunDetail, error)
	// Answers returns the answers of nodes to a request, read from the stream.
	Answers(ctx context.Context, r view.RequestDetail) (view.Answers, error)
	// Facts returns the facts of a node as a document.
	Facts(ctx context.Context, node string) (json.RawMessage, error)
	// History returns the stored revisions of an assignment, the oldest first.
	History(ctx context.Context, key string) ([]model.Entry, error)
	// Assigned returns the newest revisions of all assignments and removals without their values, the newest first, and
	// whether the bucket has more.
	Assigned(ctx context.Context) (all []model.Entry, more bool, err error)
	// Control returns the newest changes of pauses, labels and groups, the newest first, and whether the bucket has
	// more.
	Control(ctx context.Context) (all []model.Entry, more bool, err error)
	// Registrations returns the registered services.
	Registrations(ctx context.Context) ([]registration.Registration, error)
}
