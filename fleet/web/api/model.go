package api

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// Model is the fleet as it is known: fleet/web.Model is one, which has the contracts.
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

// ErrUnavailable is a source that has no connection to what it reads.
var ErrUnavailable = errors.New("NATS cannot be reached now")

// ErrBusy is a source of which too much is asked at once.
var ErrBusy = errors.New("too many read from NATS at the same time")

// Source is asked for what the model does not have: fleet/web.Source is one. Its errors may wrap ErrUnavailable, or
// ErrBusy: it decides how many read at once.
type Source interface {
	Run(ctx context.Context, node, id string) (view.RunDetail, error)
	Answers(ctx context.Context, r view.RequestDetail) (view.Answers, error)
	Facts(ctx context.Context, node string) (json.RawMessage, error)
	History(ctx context.Context, key string) ([]model.Entry, error)
	Assigned(ctx context.Context) (all []model.Entry, more bool, err error)
	Control(ctx context.Context) (all []model.Entry, more bool, err error)
	Registrations(ctx context.Context) ([]registration.Registration, error)
}
