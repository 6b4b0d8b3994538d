package api

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// Model is the known fleet, a part of fleet/web.Model, which documents it.
type Model interface {
	Progress() view.Progress
	Overview() view.Overview
	Nodes(q view.NodeQuery) (view.NodePage, error)
	Node(name string) (view.NodeDetail, bool)
	Manifests() []view.ManifestRow
	Manifest(q view.ManifestQuery) (view.ManifestDetail, bool)
	Runs(q view.EventQuery) []view.RunRow
	Events(q view.EventQuery) view.EventPage
	Requests() []view.RequestRow
	Request(id string, run bool) (view.RequestDetail, bool)
	Follow(q view.EventQuery) (events <-chan view.Event, cancel func())
}

// ErrUnavailable is a source without a connection.
var ErrUnavailable = errors.New("NATS cannot be reached now")

// ErrBusy is a source with too many concurrent reads.
var ErrBusy = errors.New("too many read from NATS at the same time")

// Source reads data that the model does not hold, a part of fleet/web.Source. Its errors may wrap ErrUnavailable or
// ErrBusy, because it limits concurrent reads.
type Source interface {
	Run(ctx context.Context, node, id string) (view.RunDetail, error)
	Answers(ctx context.Context, r view.RequestDetail) (view.Answers, error)
	Facts(ctx context.Context, node string) (json.RawMessage, error)
	History(ctx context.Context, key string) ([]model.Entry, error)
	Assigned(ctx context.Context) (all []model.Entry, more bool, err error)
	Control(ctx context.Context) (all []model.Entry, more bool, err error)
	Registrations(ctx context.Context) ([]registration.Registration, error)
}
