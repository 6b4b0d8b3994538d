package serve

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// answerOf returns the report with the answer of a node to a request.
func answerOf(t *testing.T, node, request string, code int, stdout string) model.Report {
	t.Helper()
	outcome, state := model.OutcomeChanged, &model.Transaction{
		Protocol: model.ProtocolTransaction, Type: "exec", Name: "uptime", RunID: ksuid.New().String(), Changed: true,
		Outputs: map[string]any{"stdout": stdout, "stderr": "", "exit_code": code},
	}
	if code != 0 {
		outcome, state.Failed, state.Errors = model.OutcomeFailed, true, []string{fmt.Sprintf("exit code %d", code)}
	}
	r := kvtest.Outgoing(node, model.KindEnsure, outcome, 1)
	r.Type, r.CorrelationID, r.RunID, r.Cause = model.ProtocolEnsureResponse, request, state.RunID, model.CauseEnsure
	var err error
	if r.Data, err = json.Marshal(model.EnsureResponse{Protocol: r.Type, ID: request, Node: node, Phase: model.EnsureDone, State: state}); err != nil {
		t.Fatal(err)
	}

	return r
}

// TestRequestPages tests that the page of an exec request shows the output and exit code of each node, and that
// every link to the request leads to a page.
func TestRequestPages(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	s := serveFleet(t, store, access.Options{})
	s.complete()
	failed := answerOf(t, "web3", "q1", 3, "=cmd\n")
	send(t, store, answerOf(t, "web1", "q1", 0, "up 12 days\n"), answerOf(t, "web2", "q1", 0, "up 12 days\n"), failed, answerOf(t, "web1", "q2", 0, "other\n"))
	kvtest.Eventually(t, "all answers are known", func() (bool, string) {
		var all struct{ Requests []view.RequestRow }
		s.get("requests", &all)
		return len(all.Requests) == 2 && all.Requests[0].Answers+all.Requests[1].Answers == 4, fmt.Sprint(all)
	})

	var answers view.Answers
	s.get("requests/q1/answers", &answers)
	if len(answers.Answers) != 3 || answers.Incomplete != "" {
		t.Fatalf("%+v", answers)
	}
	for _, a := range answers.Answers {
		want := map[string]string{"web1": "0 up 12 days\n", "web2": "0 up 12 days\n", "web3": "3 =cmd\n"}[a.Node]
		if a.ExitCode == nil || fmt.Sprintf("%d %s", *a.ExitCode, a.Stdout) != want || a.Time.IsZero() {
			t.Errorf("%+v", a)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(s.text("api/v1/requests/q1/answers.csv"))).ReadAll()
	if err != nil || len(rows) != 4 || rows[0][2] != "exit_code" {
		t.Fatal(rows, err)
	}
	if got := fmt.Sprintf("%s %s %s", rows[3][0], rows[3][2], rows[3][6]); got != "web3 3 '=cmd\n" {
		t.Errorf("%q", got)
	}

	body := s.text("requests/q1")
	if n := strings.Count(body, "up 12 days"); n != 1 || !strings.Contains(body, "exit code 3") || strings.Contains(body, "other") {
		t.Errorf("the output of two nodes is shown %d times: %s", n, body)
	}
	for _, node := range []string{"web1", "web2", "web3"} {
		if !strings.Contains(body, `href="/nodes/`+node+`"`) {
			t.Errorf("no row of %s", node)
		}
	}
	if events := s.text("events"); !strings.Contains(events, `href="/requests/q1"`) || strings.Contains(events, "/runs/") {
		t.Errorf("%s", events)
	}
	if run := s.text("runs/web3/" + failed.RunID); !strings.Contains(run, `href="/requests/q1"`) || !strings.Contains(run, "exec#uptime") {
		t.Errorf("%s", run)
	}
}

// TestAFloodHidesNoAnswers tests that a node that fills the stream with answers does not hide the answers of others, and
// that the page, JSON and CSV name this node.
func TestAFloodHidesNoAnswers(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	send(t, store, answerOf(t, "web1", "q1", 0, "one\n"))
	for n, outcome := range []model.Outcome{model.OutcomeChanged, model.OutcomeStable, model.OutcomeNoop} {
		for range 200 {
			r := answerOf(t, "flood", "other", 0, strings.Repeat("x", 60_000))
			r.Outcome, r.Seq = outcome, uint64(n)
			send(t, store, r)
		}
	}
	send(t, store, answerOf(t, "web2", "q1", 0, "two\n"), answerOf(t, "flood", "q1", 0, "three\n"))
	s := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	s.complete()
	kvtest.Eventually(t, "all answers are known", func() (bool, string) {
		var all struct{ Requests []view.RequestRow }
		s.get("requests", &all)
		for _, r := range all.Requests {
			if r.ID == "q1" {
				return r.Answers == 3, fmt.Sprint(r)
			}
		}
		return false, fmt.Sprint(all)
	})

	var answers view.Answers
	s.get("requests/q1/answers", &answers)
	outputs := map[string]string{}
	for _, a := range answers.Answers {
		outputs[a.Node] = a.Stdout
	}
	if len(outputs) != 2 || outputs["web1"] != "one\n" || outputs["web2"] != "two\n" {
		t.Errorf("%q", outputs)
	}
	const reason = "flood sent more than 1 MiB of answers to all requests since "
	if !strings.HasPrefix(answers.Incomplete, reason) {
		t.Errorf("%q", answers.Incomplete)
	}
	for _, path := range []string{"api/v1/requests/q1/answers.csv", "requests/q1"} {
		if body := s.text(path); !strings.Contains(body, "two") || !strings.Contains(body, reason) {
			t.Errorf("%s: %.2000s", path, body)
		}
	}
}
