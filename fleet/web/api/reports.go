package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// Filters select events and runs.
type Filters struct {
	Node     string `query:"node" maxLength:"255"`
	Manifest string `query:"manifest" maxLength:"255" doc:"The name of a manifest, or the key of an assignment"`
	Outcome  string `query:"outcome" maxLength:"40" doc:"Such as failed or changed"`
	Cause    string `query:"cause" maxLength:"40" doc:"Why it ran, such as drift or manifest"`
	Search   string `query:"search" maxLength:"200" doc:"A part of what is shown of it"`
}

func (f Filters) query() view.EventQuery {
	return view.EventQuery{Node: f.Node, Manifest: f.Manifest, Outcome: model.Outcome(f.Outcome), Cause: model.Cause(f.Cause), Search: f.Search}
}

// EventFilters select events.
type EventFilters struct {
	Filters
	Kind  string `query:"kind" maxLength:"40" doc:"The kind of report: run, transaction, health, ensure or node"`
	RunID string `query:"run_id" maxLength:"64"`
}

func (f EventFilters) query() view.EventQuery {
	q := f.Filters.query()
	q.Kind, q.RunID = f.Kind, f.RunID

	return q
}

type runsInput struct {
	Filters
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type eventsInput struct {
	EventFilters
	Before uint64 `query:"before" doc:"Only events of a lower seq: that of the last one of a page is the next page"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// runs are the newest runs.
type runs struct {
	Progress view.Progress `json:"progress"`
	Runs     []view.RunRow `json:"runs"`
}

// requests are those that were answered.
type requests struct {
	Progress view.Progress     `json:"progress"`
	Requests []view.RequestRow `json:"requests"`
}

func (a *api) addReports(routes huma.API) {
	huma.Register(routes, operation("runs", "/runs", "The newest runs"), func(_ context.Context, in *runsInput) (*answer[runs], error) {
		q := in.Filters.query()
		q.Limit = in.Limit

		return found(runs{a.Model.Progress(), orEmpty(a.Model.Runs(q))})
	})
	huma.Register(routes, operation("events", "/events", "What nodes reported, the newest first, a page at a time"), func(_ context.Context, in *eventsInput) (*answer[view.EventPage], error) {
		q := in.EventFilters.query()
		q.Before, q.Limit = in.Before, in.Limit

		return found(a.Model.Events(q))
	})
	huma.Register(routes, operation("requests", "/requests", "The requests that nodes answered"), func(context.Context, *struct{}) (*answer[requests], error) {
		return found(requests{a.Model.Progress(), orEmpty(a.Model.Requests())})
	})
}
