// Package api serves the fleet to programs: JSON over HTTP below /api/v1, described by OpenAPI
// 3.1, and a feed of server-sent events.
// Operators act on nodes through it.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
	"github.com/musterfleet/muster/resources/document"
)

const (
	// Root is the path of the API and of nothing else.
	Root = "/api"
	// Prefix is the path of the current version.
	Prefix = Root + "/v1"
)

// The limits of concurrent requests. Further requests get 503 and a time to retry.
const (
	maxStreams = 500
	// ownStreams is the limit of streams per user.
	ownStreams = 50
)

// Options configure New.
type Options struct {
	Model  Model
	Source Source
	// Actions carries out actions of operators; nil forbids them.
	Actions *ask.Executor
	Log     *slog.Logger
}

// api answers requests. It does not change after New.
type api struct {
	Options
	streams *access.Quota
	sparse  telemetry.RateLimitedLog
}

// New returns the handler of Root and everything below it, unknown paths included. A feed ends with the context of its
// request, which the server must cancel at shutdown.
func New(o Options) http.Handler {
	a := &api{Options: o, streams: access.NewQuota("feeds", maxStreams, ownStreams)}
	mux := http.NewServeMux()
	routes := a.routes(mux)
	spec, err := specOf(routes)
	mux.HandleFunc("GET "+Prefix+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			access.Problem(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(spec)
	})
	mux.HandleFunc(Root, unknown)
	mux.HandleFunc(Root+"/", unknown)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	})
}

// Spec returns the OpenAPI document of the API, indented.
func Spec() ([]byte, error) {
	return specOf((&api{}).routes(http.NewServeMux()))
}

func specOf(routes huma.API) ([]byte, error) {
	text, err := json.MarshalIndent(routes.OpenAPI(), "", "  ")

	return append(text, '\n'), err
}

// config configures the library without its browser pages, which load external scripts, and without schema links in
// answers.
func config() huma.Config {
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "muster fleet", Version: "v1",
				Description: "The fleet as muster fleet serve knows it, and the actions of operators. Errors are RFC 9457 problem documents; their detail names the remedy. Later versions may add properties.",
			},
			Servers:    []*huma.Server{{URL: Prefix}},
			Components: &huma.Components{SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "Where serve has tokens or listens beyond loopback"}}},
			Security:   []map[string][]string{{"token": {}}, {}},
		},
		Formats:                      map[string]huma.Format{"application/json": {Marshal: marshal, Unmarshal: json.Unmarshal}, "json": {Marshal: marshal, Unmarshal: json.Unmarshal}},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
	c.AllowAdditionalPropertiesByDefault = true
	c.Transformers = []huma.Transformer{suggest}

	return c
}

// marshal writes a complete value. It ignores the error of a closed connection, for which the library would panic.
func marshal(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, _ = w.Write(append(text, '\n'))

	return nil
}

func (a *api) routes(mux *http.ServeMux) huma.API {
	routes := humago.NewWithPrefix(mux, Prefix, config())
	a.addFleet(routes)
	a.addReports(routes)
	a.addSource(routes)
	a.addStream(routes)
	a.addMatch(routes)
	a.addActions(routes)

	return routes
}

// everywhere has the error statuses that every path can return: no sign-in, an invalid name, an unknown parameter, and
// too many sign-in attempts.
func everywhere(statuses ...int) []int {
	return append([]int{http.StatusUnauthorized, http.StatusMisdirectedRequest, http.StatusUnprocessableEntity, http.StatusTooManyRequests}, statuses...)
}

func operation(id, path, summary string, statuses ...int) huma.Operation {
	return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Errors: everywhere(statuses...)}
}

type answer[T any] struct{ Body T }

func found[T any](v T) (*answer[T], error) { return &answer[T]{v}, nil }

const patience = 10 * time.Second

// ExpressionProblem is the problem document for an invalid target expression.
type ExpressionProblem struct {
	huma.ErrorModel
	Expression string `json:"expression,omitempty"`
	// Line and Column start at 1; without them the problem concerns the complete expression.
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// describeExpressionProblem documents ExpressionProblem as an error of an operation.
func describeExpressionProblem(routes huma.API, o *huma.Operation) {
	o.Responses["422"].Content["application/problem+json"].Schema = routes.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[ExpressionProblem](), true, "")
}

// explain returns the problem of a target expression at a location in the request.
func explain(err error, location string) error {
	if errors.Is(err, view.ErrSlowTarget) {
		return busy(err.Error())
	}
	wrong, invalid := errors.AsType[*targets.Error](err)
	if !invalid {
		return err
	}

	return &ExpressionProblem{
		ErrorModel: huma.ErrorModel{
			Status: http.StatusUnprocessableEntity, Title: "The target expression is not valid", Detail: err.Error(),
			Errors: []*huma.ErrorDetail{{Message: wrong.Message, Location: location}},
		},
		Expression: wrong.Expression, Line: wrong.Line, Column: wrong.Column, Hint: wrong.Hint,
	}
}

// oneOf is the start of the library's message about an unknown word of a parameter.
const oneOf = "expected value to be one of "

// suggest adds the most similar valid word to an error.
func suggest(_ huma.Context, _ string, answer any) (any, error) {
	p, is := answer.(*huma.ErrorModel)
	if !is {
		return answer, nil
	}
	for _, e := range p.Errors {
		known, listed := strings.CutPrefix(e.Message, oneOf)
		if word, isWord := e.Value.(string); listed && isWord {
			if near := document.Nearest(word, strings.Split(strings.Trim(known, `"`), ", ")); near != "" {
				e.Message += ", did you mean " + near + "?"
			}
		}
	}

	return answer, nil
}

func unknown(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		access.Problem(w, http.StatusMethodNotAllowed, "this path is read-only: use GET")
		return
	}
	access.Problem(w, http.StatusNotFound, "unknown path; "+Prefix+"/openapi.json lists all paths")
}

func busy(detail string) error {
	return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable(detail), http.Header{"Retry-After": {"2"}})
}

// fetch reads from a source. It returns an HTTP problem if the source fails.
func fetch[T any](ctx context.Context, a *api, what, remedy string, get func(context.Context) (T, error)) (*answer[T], error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := get(ctx)
	switch {
	case err == nil:
		return found(v)
	case errors.Is(err, model.ErrNotFound):
		return nil, huma.Error404NotFound(fmt.Sprintf("%s: %v; %s", what, err, remedy))
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrBusy):
		return nil, busy(fmt.Sprintf("%s: %v: try again", what, err))
	case errors.Is(err, context.Canceled):
		return nil, busy("the server shuts down, or the client left")
	case errors.Is(err, context.DeadlineExceeded):
		return nil, huma.Error504GatewayTimeout(fmt.Sprintf("%s: NATS did not answer within %s: try again; overview has problems of the connection", what, patience))
	default:
		a.sparse.Log(ctx, a.Log, slog.LevelWarn, "a request cannot be answered", "what", what, "error", err)
		return nil, huma.Error502BadGateway(fmt.Sprintf("%s: %v", what, err))
	}
}
