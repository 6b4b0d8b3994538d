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

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

type nodesInput struct {
	On         string `query:"on" maxLength:"8192" doc:"A target expression, such as group(\"web\") && state == \"failed\""`
	Search     string `query:"search" maxLength:"200" doc:"A part of a name, a host, a group or a label"`
	State      string `query:"state" enum:"unreadable,stopped,unreachable,paused,failed,rejected,pending,no-manifest,ok" doc:"The state of the node as a whole"`
	Sort       string `query:"sort" enum:"name,node,state,since,heard,version,host" default:"name" doc:"node is name, as on the command line"`
	Descending bool   `query:"descending"`
	Offset     int    `query:"offset" minimum:"0" maximum:"10000000"`
	Limit      int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// NodeInput names a node. It is exported because the library reads only exported embedded structs.
type NodeInput struct {
	Node string `path:"node" maxLength:"255"`
}

type manifestInput struct {
	Name   string `path:"name" maxLength:"255"`
	Status string `query:"status" enum:"up-to-date,failed,overridden,not-applicable,rejected,pending,unreachable,unreadable,unassigned" doc:"Selects nodes by the status of the manifest there"`
	Offset int    `query:"offset" minimum:"0" maximum:"10000000"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type manifests struct {
	Progress  view.Progress      `json:"progress"`
	Manifests []view.ManifestRow `json:"manifests"`
}

func (a *api) addFleet(routes huma.API) {
	huma.Register(routes, operation("overview", "/overview", "The fleet as a whole"), func(context.Context, *struct{}) (*answer[view.Overview], error) {
		return found(a.Model.Overview())
	})
	list := operation("nodes", "/nodes", "Nodes by target expression, state or text, a page at a time", http.StatusServiceUnavailable)
	list.Description = "A target expression that is not valid is a 422 with the line, the column and a hint."
	huma.Register(routes, list, func(_ context.Context, in *nodesInput) (*answer[view.NodePage], error) {
		if in.Sort == "node" {
			in.Sort = "name"
		}
		page, err := a.Model.Nodes(view.NodeQuery{
			On: in.On, Search: in.Search, State: fleet.Status(in.State), Sort: in.Sort, Descending: in.Descending, Offset: in.Offset, Limit: in.Limit,
		})
		if err != nil {
			return nil, explain(err, "query.on")
		}

		return found(page)
	})
	describeExpressionProblem(routes, routes.OpenAPI().Paths["/nodes"].Get)
	huma.Register(routes, operation("node", "/nodes/{node}", "All data of one node", http.StatusNotFound), func(_ context.Context, in *NodeInput) (*answer[view.NodeDetail], error) {
		node, known := a.Model.Node(in.Node)
		if !known {
			return nil, unknownNode(in.Node)
		}

		return found(node)
	})
	huma.Register(routes, operation("manifests", "/manifests", "All manifests, with how many nodes have which status"), func(context.Context, *struct{}) (*answer[manifests], error) {
		return found(manifests{a.Model.Progress(), orEmpty(a.Model.Manifests())})
	})
	huma.Register(routes, operation("manifest", "/manifests/{name}", "One manifest: its nodes, a page at a time, and its runs", http.StatusNotFound), func(_ context.Context, in *manifestInput) (*answer[view.ManifestDetail], error) {
		manifest, known := a.Model.Manifest(view.ManifestQuery{Name: in.Name, Status: fleet.Status(in.Status), Offset: in.Offset, Limit: in.Limit})
		if !known {
			return nil, unknownManifest(in.Name)
		}

		return found(manifest)
	})
}

func unknownNode(name string) error {
	return huma.Error404NotFound(fmt.Sprintf("no node %q is known: %s/nodes?search= finds parts of names", name, Prefix))
}

func unknownManifest(name string) error {
	if _, of, err := fleet.ParseKey(name); err == nil {
		return huma.Error404NotFound(fmt.Sprintf("%q is a key, not the name of a manifest: use %s/manifests/%s, or %s/assignments/%s/history", name, Prefix, of, Prefix, name))
	}

	return huma.Error404NotFound(fmt.Sprintf("no manifest %q is assigned: %s/manifests has them all", name, Prefix))
}

// orEmpty returns a list that is never null in JSON.
func orEmpty[T any](all []T) []T {
	if all == nil {
		return []T{}
	}

	return all
}

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
	// Since and Until refer to the clock of the server.
	Since time.Time `query:"since" doc:"Only changes that the server stored at this time or later"`
	Until time.Time `query:"until" doc:"Only changes that the server stored before this time"`
}

// of returns the first changes within the times and by the user of a query, and the number of all of them.
func (in *auditInput) of(all []view.ControlChange) ([]view.ControlChange, int) {
	found := slices.DeleteFunc(all, func(c view.ControlChange) bool {
		return !in.Since.IsZero() && c.Time.Before(in.Since) || !in.Until.IsZero() && !c.Time.Before(in.Until) || in.By != "" && !view.IsBy(c.By, in.By)
	})

	return found[:min(len(found), in.Limit)], len(found)
}

type registrationsInput struct {
	Cluster  string `query:"cluster" maxLength:"128"`
	Service  string `query:"service" maxLength:"128"`
	Protocol string `query:"protocol" maxLength:"128"`
}

// history has the revisions of an assignment without their values, the oldest first.
type history struct {
	Key       string        `json:"key"`
	Revisions []model.Entry `json:"revisions"`
}

// changes has the stored changes of pauses, labels and groups: at most 500, and 16 of each key.
type changes struct {
	Changes  []view.ControlChange `json:"changes"`
	Matching int                  `json:"matching" doc:"How many there are without limit"`
	More     bool                 `json:"more" doc:"The bucket has others, which are not among these"`
}

// assignmentChanges has the last 500 stored revisions of assignments and removals, at most 16 of each key. Many
// revisions of one target do not displace those of others.
type assignmentChanges struct {
	Changes  []AssignmentChange `json:"changes"`
	Matching int                `json:"matching" doc:"How many there are without limit"`
	More     bool               `json:"more" doc:"The bucket has others, which are not among these"`
}

// AssignmentChange is a revision of an assignment, or its removal.
type AssignmentChange struct {
	Key      string          `json:"key"`
	Revision uint64          `json:"revision"`
	Time     time.Time       `json:"at"`
	Kind     view.ChangeKind `json:"kind"`
	// By is the unverified author, empty if unknown.
	By string `json:"by,omitempty"`
	// Problem is the reason why no node uses it, empty for none.
	Problem string `json:"problem,omitempty"`
}

type services struct {
	Registrations []registration.Registration `json:"registrations"`
}

var sourceErrors = [...]int{http.StatusNotFound, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

func (a *api) addSource(routes huma.API) {
	huma.Register(routes, operation("facts", "/nodes/{node}/facts", "The facts of a node", sourceErrors[:]...), func(ctx context.Context, in *NodeInput) (*answer[json.RawMessage], error) {
		if model.CheckNode(in.Node, nil) != nil {
			return nil, unknownNode(in.Node)
		}
		return fetch(ctx, a, "facts of "+in.Node, "an agent stores them a moment after it starts", func(ctx context.Context) (json.RawMessage, error) {
			facts, err := a.Source.Facts(ctx, in.Node)
			if err == nil && !json.Valid(facts) {
				err = errors.New("the node stored invalid JSON")
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
		all, err := a.history(ctx, in.Key, "path.key")
		if err != nil {
			return nil, err
		}
		out := history{Key: in.Key, Revisions: []model.Entry{}}
		for _, e := range all {
			e.Value = nil
			out.Revisions = append(out.Revisions, e)
		}
		return found(out)
	})
	huma.Register(routes, operation("audit-assignments", "/audit/assignments", "Assignments and removals, newest first", sourceErrors[1:]...), func(ctx context.Context, in *auditInput) (*answer[assignmentChanges], error) {
		return fetch(ctx, a, "audit of assignments", "", func(ctx context.Context) (assignmentChanges, error) {
			all, more, err := a.Source.Assigned(ctx)
			found, matching := in.of(view.AssignmentChanges(all, in.Search))
			out := assignmentChanges{[]AssignmentChange{}, matching, more}
			for _, c := range found {
				out.Changes = append(out.Changes, AssignmentChange{c.Key, c.Revision, c.Time, c.Kind, c.By, c.Text})
			}
			return out, err
		})
	})
	huma.Register(routes, operation("audit-nodes", "/audit/nodes", "What operators wrote about nodes and groups, the newest first", sourceErrors[1:]...), func(ctx context.Context, in *auditInput) (*answer[changes], error) {
		return fetch(ctx, a, "audit of nodes and groups", "", func(ctx context.Context) (changes, error) {
			all, more, err := a.Source.Control(ctx)
			found, matching := in.of(view.ControlChanges(all, in.Search))
			return changes{found, matching, more}, err
		})
	})
	huma.Register(routes, operation("registrations", "/registrations", "The services that nodes register", sourceErrors[1:]...), func(ctx context.Context, in *registrationsInput) (*answer[services], error) {
		return fetch(ctx, a, "registrations", "", func(ctx context.Context) (services, error) {
			all, err := a.Source.Registrations(ctx)
			return services{registration.Filter(*in).Of(all)}, err
		})
	})
}

// history returns the stored revisions of a key at a location in the request.
func (a *api) history(ctx context.Context, key, location string) ([]model.Entry, error) {
	if err := model.CheckKey(key); err != nil {
		return nil, huma.Error422UnprocessableEntity(fmt.Sprintf("%v: %s/manifests has the keys", err, Prefix), &huma.ErrorDetail{Message: err.Error(), Location: location, Value: key})
	}
	all, err := fetch(ctx, a, "history of "+key, Prefix+"/manifests has the keys", func(ctx context.Context) ([]model.Entry, error) { return a.Source.History(ctx, key) })
	if err != nil {
		return nil, err
	}

	return all.Body, nil
}
