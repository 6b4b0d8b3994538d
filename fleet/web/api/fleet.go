package api

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
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

// manifests are all manifests.
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
	spec := routes.OpenAPI()
	spec.Paths["/nodes"].Get.Responses["422"].Content["application/problem+json"].Schema = spec.Components.Schemas.Schema(reflect.TypeFor[ExpressionProblem](), true, "")
	huma.Register(routes, operation("node", "/nodes/{node}", "What is known of one node", http.StatusNotFound), func(_ context.Context, in *NodeInput) (*answer[view.NodeDetail], error) {
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
