package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

type runInput struct {
	NodeInput
	RunID string `path:"run_id" maxLength:"64"`
}

type keyInput struct {
	Key string `path:"key" maxLength:"255" doc:"The key of an assignment, such as group.web.motd"`
}

type auditInput struct {
	Search string `query:"search" maxLength:"200" doc:"A part of a key, a name or a text"`
	By     string `query:"by" maxLength:"200" doc:"Only changes by this user, with or without the host after the name"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
	// Since and Until are by the clock of the server.
	Since time.Time `query:"since" doc:"Only changes that the server stored at this time or later"`
	Until time.Time `query:"until" doc:"Only changes that the server stored before this time"`
}

// selected returns the changes within the times and by the user of a query.
func selected[T any](in *auditInput, all []T, of func(T) (at time.Time, by string)) []T {
	return slices.DeleteFunc(all, func(c T) bool {
		at, by := of(c)
		return !in.Since.IsZero() && at.Before(in.Since) || !in.Until.IsZero() && !at.Before(in.Until) || in.By != "" && !view.IsBy(by, in.By)
	})
}

type registrationsInput struct {
	Cluster  string `query:"cluster" maxLength:"128"`
	Service  string `query:"service" maxLength:"128"`
	Protocol string `query:"protocol" maxLength:"128"`
}

// history are the revisions of an assignment, the oldest first, without their values.
type history struct {
	Key       string        `json:"key"`
	Revisions []model.Entry `json:"revisions"`
}

// changes are the pauses, labels and groups that operators wrote or removed, as far as the bucket has them: of
// the last 500 changes, and 16 of each key.
type changes struct {
	Changes  []view.ControlChange `json:"changes"`
	Matching int                  `json:"matching" doc:"How many there are without limit"`
	More     bool                 `json:"more" doc:"The bucket has others, which are not among these"`
}

// assignmentChanges are the last 500 revisions of assignments that the bucket has, of 16 of each key, also of those
// that were removed. Those of one target do not displace all others.
type assignmentChanges struct {
	Changes  []view.AssignmentChange `json:"changes"`
	Matching int                     `json:"matching" doc:"How many there are without limit"`
	More     bool                    `json:"more" doc:"The bucket has others, which are not among these"`
}

// services are what nodes registered.
type services struct {
	Registrations []registration.Registration `json:"registrations"`
}

// sourceErrors are those of what is read when it is asked for.
var sourceErrors = [...]int{http.StatusNotFound, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

func (a *api) addSource(routes huma.API) {
	huma.Register(routes, operation("facts", "/nodes/{node}/facts", "The facts of a node", sourceErrors[:]...), func(ctx context.Context, in *NodeInput) (*answer[json.RawMessage], error) {
		if model.CheckNode(in.Node, nil) != nil {
			return nil, unknownNode(in.Node)
		}
		return fetch(ctx, a, "facts of "+in.Node, "an agent stores them a moment after it starts", func(ctx context.Context) (json.RawMessage, error) {
			facts, err := a.Source.Facts(ctx, in.Node)
			if err == nil && !json.Valid(facts) {
				err = errors.New("the node stored what is no JSON")
			}
			return facts, err
		})
	})
	huma.Register(routes, operation("run", "/nodes/{node}/runs/{run_id}", "One run with its transactions", sourceErrors[:]...), func(ctx context.Context, in *runInput) (*answer[view.RunDetail], error) {
		return fetch(ctx, a, "run "+in.RunID+" of "+in.Node, "the stream has dropped it, or its reports are on their way", func(ctx context.Context) (view.RunDetail, error) {
			run, err := a.Source.Run(ctx, in.Node, in.RunID)
			run.Progress = a.Model.Progress()
			return run, err
		})
	})
	huma.Register(routes, operation("history", "/assignments/{key}/history", "The stored revisions of an assignment, the oldest first", sourceErrors[:]...), func(ctx context.Context, in *keyInput) (*answer[history], error) {
		if err := checkKey(in.Key, "path.key"); err != nil {
			return nil, err
		}
		return fetch(ctx, a, "history of "+in.Key, Prefix+"/manifests has the keys", func(ctx context.Context) (history, error) {
			all, err := a.Source.History(ctx, in.Key)
			out := history{Key: in.Key, Revisions: []model.Entry{}}
			for _, e := range all {
				e.Value = nil
				out.Revisions = append(out.Revisions, e)
			}
			return out, err
		})
	})
	huma.Register(routes, operation("audit-assignments", "/audit/assignments", "What was assigned and removed, the newest first", sourceErrors[1:]...), func(ctx context.Context, in *auditInput) (*answer[assignmentChanges], error) {
		return fetch(ctx, a, "audit of assignments", "", func(ctx context.Context) (assignmentChanges, error) {
			all, more, err := a.Source.Assigned(ctx)
			found := selected(in, view.AssignmentChanges(all, in.Search), func(c view.AssignmentChange) (time.Time, string) { return c.Time, c.By })
			return assignmentChanges{found[:min(len(found), in.Limit)], len(found), more}, err
		})
	})
	huma.Register(routes, operation("audit-nodes", "/audit/nodes", "What operators wrote about nodes and groups, the newest first", sourceErrors[1:]...), func(ctx context.Context, in *auditInput) (*answer[changes], error) {
		return fetch(ctx, a, "audit of nodes and groups", "", func(ctx context.Context) (changes, error) {
			all, more, err := a.Source.Control(ctx)
			found := selected(in, view.ControlChanges(all, in.Search), func(c view.ControlChange) (time.Time, string) { return c.Time, c.By })
			return changes{found[:min(len(found), in.Limit)], len(found), more}, err
		})
	})
	huma.Register(routes, operation("registrations", "/registrations", "The services that nodes register", sourceErrors[1:]...), func(ctx context.Context, in *registrationsInput) (*answer[services], error) {
		return fetch(ctx, a, "registrations", "", func(ctx context.Context) (services, error) {
			all, err := a.Source.Registrations(ctx)
			return services{registration.Filter(*in).Of(all)}, err
		})
	})
}

// checkKey returns the problem of what is no key of an assignment, which is at a location of the request.
func checkKey(key, location string) error {
	err := model.CheckKey(key)
	if err == nil {
		return nil
	}

	return huma.Error422UnprocessableEntity(fmt.Sprintf("%v: %s/manifests has the keys", err, Prefix), &huma.ErrorDetail{Message: err.Error(), Location: location, Value: key})
}
