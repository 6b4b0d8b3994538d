package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
)

const maxBody = 64 << 10

// ActionTarget selects the nodes of an action. It is exported because the library reads only exported structs.
type ActionTarget struct {
	_     struct{} `additionalProperties:"false"`
	Nodes []string `json:"nodes,omitempty" maxItems:"100" doc:"Names of nodes"`
	Group string   `json:"group,omitempty" maxLength:"255" doc:"A group; a pause also applies to nodes that join later"`
	On    string   `json:"on,omitempty" maxLength:"8192" doc:"A target expression; true is all nodes"`
}

// ActionBody has the fields of all actions.
type ActionBody struct {
	Target ActionTarget `json:"target" doc:"One of nodes, group and on"`
	Expect *int         `json:"expect,omitempty" minimum:"1" doc:"Number of matching nodes; another number is refused with 409"`
	Digest string       `json:"expect_digest,omitempty" pattern:"^sha256-[0-9a-f]{64}$" patternDescription:"the digest of /actions/match" doc:"Digest of the matching nodes from /actions/match; other nodes are refused with 409"`
	All    bool         `json:"all,omitempty" doc:"Confirms a target that is all of a fleet of more than ten nodes"`
}

type pauseInput struct {
	WaitInput
	Body struct {
		_ struct{} `additionalProperties:"false"`
		ActionBody
		Until  string `json:"until,omitempty" maxLength:"40" doc:"End of the pause: a duration from now such as 90m or 2d, or a time such as 2006-01-02T15:04:05Z; missing for never"`
		Reason string `json:"reason,omitempty" maxLength:"512"`
	}
}

type resumeInput struct {
	WaitInput
	Body struct {
		_ struct{} `additionalProperties:"false"`
		ActionBody
	}
}

type runNowInput struct {
	WaitInput
	Body struct {
		_ struct{} `additionalProperties:"false"`
		ActionBody
		Manifests []string `json:"manifests,omitempty" maxItems:"100" doc:"Names of manifests; missing for all that is assigned"`
		Noop      bool     `json:"noop,omitempty" doc:"Show what would change, and change nothing"`
		Within    string   `json:"within,omitempty" maxLength:"20" doc:"How long nodes may take, 2m by default, at most 10m"`
	}
}

type previewInput struct {
	WaitInput
	Body struct {
		_ struct{} `additionalProperties:"false"`
		ActionBody
		Key      string `json:"key,omitempty" maxLength:"255" doc:"The key of an assignment, such as group.web.motd"`
		Revision uint64 `json:"revision,omitempty" doc:"A revision from its history; the newest if missing"`
		Name     string `json:"name,omitempty" maxLength:"255" doc:"Without a key: the name of the manifest"`
		Manifest string `json:"manifest,omitempty" doc:"Without a key: the manifest, or an assignment document"`
		Within   string `json:"within,omitempty" maxLength:"20" doc:"How long nodes may take, 2m by default, at most 10m"`
	}
}

// WaitInput limits how long an answer waits.
type WaitInput struct {
	Wait int `query:"wait" minimum:"1" maximum:"50" default:"5" doc:"How many seconds the answer waits for the end of the action at most"`
}

type actionInput struct {
	ID string `path:"id" maxLength:"64"`
	WaitInput
}

// acted is the answer to an action: its current state.
type acted struct {
	Status   int
	Location string `header:"Location" doc:"Where the action is"`
	Body     ask.Action
}

type lastActions struct {
	Actions []ask.Action `json:"actions"`
}

// acting returns an operation for operators.
func acting(k ask.Kind, summary string) huma.Operation {
	return huma.Operation{
		OperationID: string(k) + "-nodes", Method: http.MethodPost, Path: "/actions/" + string(k), Summary: summary, MaxBodyBytes: maxBody, DefaultStatus: http.StatusAccepted,
		Description: "It needs the role operate, and muster fleet serve with --actions. The answer has the results so far; they are complete when ended is set. An invalid target expression is a 422 with line, column and hint.",
		Errors:      everywhere(http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusServiceUnavailable),
	}
}

// start registers an operation that begins an action. read returns the action, and how many seconds the answer waits.
func start[In any](a *api, routes huma.API, o huma.Operation, read func(ctx context.Context, in *In) (ask.Spec, int, error)) {
	huma.Register(routes, o, func(ctx context.Context, in *In) (*acted, error) {
		if err := a.mayAct(ctx); err != nil {
			return nil, err
		}
		spec, wait, err := read(ctx, in)
		if err != nil {
			return nil, explainAction(err)
		}
		it, err := a.Actions.Start(spec)
		if err != nil {
			return nil, explainAction(err)
		}
		return a.soon(ctx, it, wait), nil
	})
	describeExpressionProblem(routes, routes.OpenAPI().Paths[o.Path].Post)
}

func (a *api) addActions(routes huma.API) {
	start(a, routes, acting(ask.Pause, "Have nodes observe and change nothing"), func(ctx context.Context, in *pauseInput) (o ask.Spec, wait int, err error) {
		o = ofBody(ctx, ask.Pause, in.Body.ActionBody)
		o.Reason = in.Body.Reason
		o.Until, err = ask.ParseUntil(in.Body.Until, time.Now())
		return o, in.Wait, err
	})
	start(a, routes, acting(ask.Resume, "End the pause of nodes"), func(ctx context.Context, in *resumeInput) (ask.Spec, int, error) {
		return ofBody(ctx, ask.Resume, in.Body.ActionBody), in.Wait, nil
	})
	start(a, routes, acting(ask.Run, "Run assigned manifests on nodes now"), func(ctx context.Context, in *runNowInput) (ask.Spec, int, error) {
		o := ofBody(ctx, ask.Run, in.Body.ActionBody)
		o.Manifests, o.Noop = in.Body.Manifests, in.Body.Noop
		return o, in.Wait, setWithin(&o, in.Body.Within)
	})
	previewing := acting(ask.Preview, "Ask nodes what an assignment would change, without assigning it")
	previewing.MaxBodyBytes = 2 * ask.MaxPreviewed
	start(a, routes, previewing, a.preview)
	cancelling := huma.Operation{
		OperationID: "cancel-action", Method: http.MethodPost, Path: "/actions/{id}/cancel", Summary: "Cancel an action in progress of any user", DefaultStatus: http.StatusAccepted,
		Description: "It needs the role operate. Nodes finish started work, and written values stay, as the notes of the action say. An ended action stays unchanged: cancelled_by is missing if it was not cancelled.",
		Errors:      everywhere(http.StatusForbidden, http.StatusNotFound),
	}
	huma.Register(routes, cancelling, func(ctx context.Context, in *actionInput) (*acted, error) {
		if err := a.mayAct(ctx); err != nil {
			return nil, err
		}
		it, err := a.Actions.Cancel(in.ID, access.UserOf(ctx).Name)
		if err != nil {
			return nil, huma.Error404NotFound(err.Error())
		}
		return a.soon(ctx, it, in.Wait), nil
	})
	huma.Register(routes, operation("actions", "/actions", "What operators did with this server since it started, the newest first", http.StatusForbidden), func(ctx context.Context, _ *struct{}) (*answer[lastActions], error) {
		if a.Actions == nil {
			return nil, huma.Error403Forbidden(ask.ErrOff.Error())
		}
		all := a.Actions.Actions()
		for i := range all {
			all[i] = all[i].VisibleTo(operates(ctx))
		}
		return found(lastActions{all})
	})
	huma.Register(routes, operation("action", "/actions/{id}", "One action with its results by node", http.StatusForbidden, http.StatusNotFound), func(ctx context.Context, in *actionInput) (*answer[ask.Action], error) {
		if a.Actions == nil {
			return nil, huma.Error403Forbidden(ask.ErrOff.Error())
		}
		it, known := a.waitFor(ctx, in.ID, in.Wait)
		if !known {
			return nil, huma.Error404NotFound(fmt.Sprintf("action %q is unknown: this server restarted, or another server ran it; %s/requests lists the requests to nodes", in.ID, Prefix))
		}
		return found(it.VisibleTo(operates(ctx)))
	})
}

// preview returns the preview of a manifest, or of a revision of an assignment.
func (a *api) preview(ctx context.Context, in *previewInput) (ask.Spec, int, error) {
	o := ofBody(ctx, ask.Preview, in.Body.ActionBody)
	o.Previewed = &ask.Previewed{Name: in.Body.Name, Value: in.Body.Manifest}
	if err := setWithin(&o, in.Body.Within); err != nil || in.Body.Key == "" {
		return o, in.Wait, err
	}
	all, err := a.history(ctx, in.Body.Key, "body.key")
	if err == nil {
		o.Previewed, err = ask.RevisionOf(in.Body.Key, all, in.Body.Revision)
	}

	return o, in.Wait, err
}

func operates(ctx context.Context) bool { return access.UserOf(ctx).Role >= access.Operate }

func ofBody(ctx context.Context, k ask.Kind, b ActionBody) ask.Spec {
	user := access.UserOf(ctx)
	o := ask.Spec{Kind: k, Target: ask.Target{Nodes: b.Target.Nodes, Group: b.Target.Group, On: b.Target.On}, By: user.Name, Share: user.Share(), All: b.All, Expect: ask.Expect{Digest: b.Digest}}
	if b.Expect != nil {
		o.Expect.Nodes = *b.Expect
	}

	return o
}

// mayAct returns why the user may not act, nil if they may.
func (a *api) mayAct(ctx context.Context) error {
	switch {
	case a.Actions == nil:
		return huma.Error403Forbidden(ask.ErrOff.Error())
	case access.UserOf(ctx).Role < access.Operate:
		return huma.Error403Forbidden("that needs the role operate")
	default:
		return nil
	}
}

// setWithin sets the time limit for nodes.
func setWithin(o *ask.Spec, text string) (err error) {
	if text == "" {
		return nil
	}
	if o.Within, err = time.ParseDuration(text); err != nil {
		return huma.Error422UnprocessableEntity("within must be a duration such as 2m", &huma.ErrorDetail{Message: err.Error(), Location: "body.within"})
	}

	return nil
}

// soon waits some seconds for the end of an action.
func (a *api) soon(ctx context.Context, it ask.Action, wait int) *acted {
	if now, known := a.waitFor(ctx, it.ID, wait); known {
		it = now
	}

	return &acted{http.StatusAccepted, Prefix + "/actions/" + it.ID, it}
}

func (a *api) waitFor(ctx context.Context, id string, seconds int) (ask.Action, bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()

	return a.Actions.Wait(ctx, id)
}

func explainAction(err error) error {
	if _, explained := errors.AsType[huma.StatusError](err); explained {
		return err
	}
	_, invalid := errors.AsType[*targets.Error](err)
	status := StatusOf(err)
	switch {
	case invalid, errors.Is(err, view.ErrSlowTarget):
		return explain(err, "body.target.on")
	case errors.Is(err, ask.ErrAll):
		return huma.NewError(status, err.Error()+`: send "all": true`)
	case status == http.StatusServiceUnavailable:
		return busy(err.Error())
	default:
		return huma.NewError(status, err.Error())
	}
}

// StatusOf returns the HTTP status for a rejected action, or 200 if err is nil.
func StatusOf(err error) int {
	_, invalid := errors.AsType[*targets.Error](err)
	_, refused := errors.AsType[*ask.Refusal](err)
	switch {
	case err == nil:
		return http.StatusOK
	case refused, invalid:
		return http.StatusUnprocessableEntity
	case errors.Is(err, ask.ErrNobody), errors.Is(err, ask.ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, ask.ErrAll), errors.Is(err, ask.ErrOthers):
		return http.StatusConflict
	default:
		return http.StatusServiceUnavailable
	}
}

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
	All      bool     `json:"all" doc:"The target is the whole fleet of more than ten nodes; an action needs all"`
}

const maxFirst = 100

func (a *api) addMatch(routes huma.API) {
	match := operation("match", "/actions/match", "The nodes of a target now, and their digest for an action", http.StatusForbidden, http.StatusNotFound, http.StatusServiceUnavailable)
	match.Description = "With this digest as expect_digest, an action affects exactly these nodes or none."
	huma.Register(routes, match, func(_ context.Context, in *matchInput) (*answer[Matched], error) {
		if a.Actions == nil {
			return nil, huma.Error403Forbidden(ask.ErrOff.Error())
		}
		m, err := a.Actions.Match(ask.Target{Nodes: in.Node, Group: in.Group, On: in.On})
		if _, invalid := errors.AsType[*targets.Error](err); invalid {
			return nil, explain(err, "query.on")
		}
		if err != nil {
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
	describeExpressionProblem(routes, routes.OpenAPI().Paths["/actions/match"].Get)
}
