package api

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// Filters select events and runs.
type Filters struct {
	Node     string `query:"node" maxLength:"255"`
	Manifest string `query:"manifest" maxLength:"255" doc:"The name of a manifest, or the key of an assignment"`
	Cause    string `query:"cause" enum:"manifest,drift,schedule,ensure,request,health,command" doc:"Why it ran"`
	Search   string `query:"search" maxLength:"200" doc:"Part of its shown text"`
}

func (f Filters) query() view.EventQuery {
	return view.EventQuery{Node: f.Node, Manifest: f.Manifest, Cause: model.Cause(f.Cause), Search: f.Search}
}

// EventFilters select events.
type EventFilters struct {
	Filters
	Outcome string `query:"outcome" enum:"stable,changed,refreshed,noop,failed,unmet,skipped,notrun,refused,rejected,ok,warning,critical,unknown,started,stopped,dropped,unassigned,duplicate,flapping" doc:"Outcome of a run, resource, request or health check; for the kind node the event. rejected means refused, the word in answers"`
	Kind    string `query:"kind" enum:"run,transaction,health,ensure,node" doc:"The kind of report"`
	RunID   string `query:"run_id" maxLength:"64"`
}

func (f EventFilters) query() view.EventQuery {
	q := f.Filters.query()
	q.Kind, q.RunID, q.Outcome = f.Kind, f.RunID, model.OutcomeNamed(f.Outcome)

	return q
}

type runsInput struct {
	Filters
	Outcome string `query:"outcome" enum:"stable,changed,noop,failed,notrun,refused,rejected" doc:"rejected is refused, as answers have it"`
	Limit   int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type eventsInput struct {
	EventFilters
	Before uint64    `query:"before" doc:"Only events with a lower seq: the seq of the last event of a page returns the next page"`
	Limit  int       `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Since  time.Time `query:"since" doc:"Only events that the server stored at this time or later"`
	Until  time.Time `query:"until" doc:"Only events that the server stored before this time"`
}

type runs struct {
	Progress view.Progress `json:"progress"`
	Runs     []view.RunRow `json:"runs"`
}

type requests struct {
	Progress view.Progress     `json:"progress"`
	Requests []view.RequestRow `json:"requests"`
}

type requestInput struct {
	ID  string `path:"id" maxLength:"512"`
	Run bool   `query:"run" doc:"The run request with the id; without, the run is answered only where no other request has the id"`
}

func (a *api) addReports(routes huma.API) {
	huma.Register(routes, operation("runs", "/runs", "The newest runs"), func(_ context.Context, in *runsInput) (*answer[runs], error) {
		q := in.Filters.query()
		q.Outcome, q.Limit = model.OutcomeNamed(in.Outcome), in.Limit

		return found(runs{a.Model.Progress(), orEmpty(a.Model.Runs(q))})
	})
	huma.Register(routes, operation("events", "/events", "What nodes reported, the newest first, a page at a time"), func(_ context.Context, in *eventsInput) (*answer[view.EventPage], error) {
		q := in.EventFilters.query()
		q.Before, q.Limit, q.Since, q.Until = in.Before, in.Limit, in.Since, in.Until

		return found(a.Model.Events(q))
	})
	huma.Register(routes, operation("request", "/requests/{id}", "A request with all nodes without an answer, or why they are unknown", http.StatusNotFound), func(_ context.Context, in *requestInput) (*answer[view.RequestDetail], error) {
		request, known := a.Model.Request(in.ID, in.Run)
		if !known {
			return nil, unknownRequest(in.ID)
		}

		return found(request)
	})
	huma.Register(routes, operation("request-answers", "/requests/{id}/answers", "The answers of nodes to a request, with the output of commands", sourceErrors[:]...), func(ctx context.Context, in *requestInput) (*answer[view.Answers], error) {
		_, found, err := a.answersTo(ctx, in)

		return found, err
	})
	csv := operation("request-answers-csv", "/requests/{id}/answers.csv", "The answers of nodes to a request as a table. An apostrophe precedes texts that spreadsheets would take for formulas. Nodes without an answer have the outcome no answer. If the table lacks answers or nodes, its last rows have no node and the outcome incomplete", sourceErrors[:]...)
	csv.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	huma.Register(routes, csv, func(ctx context.Context, in *requestInput) (*table, error) {
		request, found, err := a.answersTo(ctx, in)
		if err != nil {
			return nil, err
		}

		return newTable("request-"+in.ID+".csv", answersHeader, answersRows(request, found.Body))
	})
	huma.Register(routes, operation("requests", "/requests", "The requests that nodes answered"), func(context.Context, *struct{}) (*answer[requests], error) {
		return found(requests{a.Model.Progress(), orEmpty(a.Model.Requests())})
	})
}

func (a *api) answersTo(ctx context.Context, in *requestInput) (view.RequestDetail, *answer[view.Answers], error) {
	request, known := a.Model.Request(in.ID, in.Run)
	if !known {
		return request, nil, unknownRequest(in.ID)
	}
	found, err := fetch(ctx, a, "answers to the request "+in.ID, "", func(ctx context.Context) (view.Answers, error) {
		return a.Source.Answers(ctx, request)
	})

	return request, found, err
}

func unknownRequest(id string) error {
	return huma.Error404NotFound(fmt.Sprintf("request %q is unknown: see %s/requests", id, Prefix))
}

type table struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

func newTable(name string, header []string, rows [][]model.CSVCell) (*table, error) {
	var out bytes.Buffer
	if err := model.WriteCSV(&out, header, rows); err != nil {
		return nil, err
	}

	return &table{"text/csv; charset=utf-8", mime.FormatMediaType("attachment", map[string]string{"filename": name}), out.Bytes()}, nil
}

var answersHeader = []string{"node", "outcome", "exit_code", "time", "seconds", "text", "stdout", "stderr"}

// answersRows returns one row per answer, then one with the outcome "no answer" per node without an answer. If the table
// lacks answers or nodes, further rows without a node have the outcome "incomplete" and the reason.
func answersRows(r view.RequestDetail, all view.Answers) [][]model.CSVCell {
	chosen := func(text string) model.CSVCell { return model.CSVCell{Text: text, Chosen: true} }
	var rows [][]model.CSVCell
	for _, a := range all.Answers {
		code := ""
		if a.ExitCode != nil {
			code = strconv.Itoa(*a.ExitCode)
		}
		rows = append(rows, []model.CSVCell{
			chosen(a.Node), chosen(string(a.Outcome)), {Text: code}, {Text: a.Time.UTC().Format(time.RFC3339)},
			{Text: strconv.FormatFloat(a.Duration.Seconds(), 'f', -1, 64)}, chosen(a.Text), chosen(a.Stdout), chosen(a.Stderr),
		})
	}
	for _, node := range r.Missing {
		rows = append(rows, []model.CSVCell{chosen(node), {Text: "no answer"}, {}, {}, {}, {}, {}, {}})
	}
	incomplete := func(reason string) {
		rows = append(rows, []model.CSVCell{{}, {Text: "incomplete"}, {}, {}, {}, chosen(reason), {}, {}})
	}
	if count := r.Nodes - r.Answers; count > 0 && r.Unknown != "" {
		incomplete(fmt.Sprintf("%d nodes without an answer are unknown: %s", count, r.Unknown))
	}
	if all.Incomplete != "" {
		incomplete("Some answers are missing: " + all.Incomplete)
	}

	return rows
}
