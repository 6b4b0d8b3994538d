package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// patience is the timeout of a source.
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

// explain returns the problem of a target expression at a location in the request.
func explain(err error, location string) error {
	var wrong *targets.Error
	switch {
	case errors.Is(err, view.ErrSlowTarget):
		return busy(err.Error())
	case !errors.As(err, &wrong):
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

// unknown answers requests for unknown paths and methods.
func unknown(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeProblem(w, http.StatusMethodNotAllowed, "this path is read-only: use GET")
		return
	}
	writeProblem(w, http.StatusNotFound, "unknown path; "+Prefix+"/openapi.json lists all paths")
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	text, _ := json.Marshal(huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail})
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// busy returns when to retry.
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
