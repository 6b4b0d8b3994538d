package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/targets"
)

type matchInput struct {
	Node  []string `query:"node,explode" maxItems:"100" doc:"Names of nodes"`
	Group string   `query:"group" maxLength:"255" doc:"A group"`
	On    string   `query:"on" maxLength:"8192" doc:"A target expression; true is all nodes"`
}

// Matched describes the nodes of a target.
type Matched struct {
	Nodes  int    `json:"nodes" doc:"How many nodes match: expect of an action"`
	Digest string `json:"digest" doc:"Stands for their names: expect_digest of an action"`
	// First are the first nodes by name.
	First []string `json:"first"`
	// Undecided is the number of further nodes for which the target cannot be evaluated. Actions skip them.
	Undecided int `json:"undecided"`
	// Warnings are the warnings of targets.Selection.
	Warnings []string `json:"warnings"`
	All      bool     `json:"all" doc:"They are all of a fleet of more than ten nodes, which an action confirms by all"`
}

// maxFirst is the maximum number of named nodes.
const maxFirst = 100

// addMatch adds the operation to check a target before an action.
func (a *api) addMatch(routes huma.API) {
	match := operation("match", "/actions/match", "Whom a target means now, and a digest of these nodes for an action", http.StatusForbidden, http.StatusNotFound, http.StatusServiceUnavailable)
	match.Description = "An action that is sent the digest as expect_digest is done for these nodes, or not at all."
	huma.Register(routes, match, func(_ context.Context, in *matchInput) (*answer[Matched], error) {
		if a.Actions == nil {
			return nil, huma.Error403Forbidden(ask.ErrOff.Error())
		}
		m, err := a.Actions.Match(ask.Target{Nodes: in.Node, Group: in.Group, On: in.On})
		var wrong *targets.Error
		switch {
		case errors.As(err, &wrong):
			return nil, explain(err, "query.on")
		case err != nil:
			return nil, explainAction(err)
		}
		out := Matched{Nodes: len(m.Nodes), Digest: m.Digest(), All: m.All, Undecided: len(m.Undecided), Warnings: append([]string{}, m.Warnings...), First: make([]string, len(m.Nodes))}
		for i, n := range m.Nodes {
			out.First[i] = n.Node
		}
		slices.Sort(out.First)
		out.First = out.First[:min(len(out.First), maxFirst)]

		return found(out)
	})
	spec := routes.OpenAPI()
	spec.Paths["/actions/match"].Get.Responses["422"].Content["application/problem+json"].Schema = spec.Components.Schemas.Schema(reflect.TypeFor[ExpressionProblem](), true, "")
}
