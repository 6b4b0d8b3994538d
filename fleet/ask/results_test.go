package ask_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// resultOf returns the report of an answer to a request.
func resultOf(t testing.TB, node, id string, answer model.EnsureResponse) model.Report {
	t.Helper()
	data, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}

	return model.Report{Node: node, Kind: model.KindEnsure, Type: model.ProtocolEnsureResponse, CorrelationID: id, Data: data}
}

// Each node counts once, with its first final answer to a request of the kind. It cannot answer for another node.
func TestResultsCountOnce(t *testing.T) {
	t.Parallel()
	r := ask.NewResults("1", model.ProtocolEnsureResponse, []string{"a", "b", "c", "d", "e"})
	done, failed := model.EnsureResponse{Phase: model.EnsureDone, Node: "b"}, model.EnsureResponse{Phase: model.EnsureFailed}
	var added []string
	for _, report := range []model.Report{
		resultOf(t, "a", "other", failed), resultOf(t, "a", "1", model.EnsureResponse{Phase: model.EnsureRunning}),
		resultOf(t, "a", "1", done), resultOf(t, "a", "1", done), resultOf(t, "a", "1", failed), resultOf(t, "x", "1", done),
		{Node: "b", Kind: model.KindEnsure, Type: model.ProtocolRunResponse, CorrelationID: "1", Data: json.RawMessage(`{"phase":"failed"}`)},
		{Node: "b", Kind: model.KindRun, CorrelationID: "1", Data: json.RawMessage(`{"phase":"done"}`)},
		{Node: "b", Kind: model.KindEnsure, Type: model.ProtocolEnsureResponse, CorrelationID: "1", Data: json.RawMessage(`{"phase":1}`)},
	} {
		if answer, isNew := r.Add(report); isNew {
			added = append(added, answer.Node+" "+string(answer.Phase))
		}
	}
	if want := []string{"a done", "b failed"}; !reflect.DeepEqual(added, want) {
		t.Errorf("added %v", added)
	}
	stopped := model.Node{NodeState: model.NodeState{Node: "c", Event: model.NodeStopped}}
	got := r.Ensured([]model.Node{{NodeState: model.NodeState{Node: "a"}}, stopped, {NodeState: model.NodeState{Node: "d"}}})
	want := map[string]ask.State{"a": ask.StateDone, "b": ask.StateFailed, "c": ask.StateUnreachable, "d": ask.StatePending, "e": ask.StateUnreachable}
	if !reflect.DeepEqual(got.NodeStates(), want) || got.OK() || r.Complete() {
		t.Errorf("states %v", got.NodeStates())
	}
	for _, node := range []string{"c", "d", "e"} {
		r.Add(resultOf(t, node, "1", done))
	}
	if !r.Complete() {
		t.Error("not complete")
	}
}

// Without expected nodes, all nodes that report count, and the results are never complete.
func TestResultsOfAll(t *testing.T) {
	t.Parallel()
	r := ask.NewResults("1", model.ProtocolEnsureResponse, nil)
	r.Add(resultOf(t, "a", "1", model.EnsureResponse{Phase: model.EnsureDone}))
	if got := r.Ensured(nil); !got.OK() || len(got.Answers) != 1 || r.Complete() {
		t.Errorf("got %+v", got)
	}
}

// TestShortAnswersFillNoMemory: an answer that leaves out what nodes always write is invalid where it would be
// much longer with that; one of many runs, as nodes send it, is not.
func TestShortAnswersFillNoMemory(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(",{}", 340_000)
	for _, text := range []string{`{"runs":[{}` + many + `]}`, `{"state":{"changes":[{}` + many + `]}}`} {
		if out, err := ask.DecodeAnswer([]byte(text)); err == nil || len(out.Runs) > 0 || out.State != nil {
			t.Errorf("%.30s: %v", text, err)
		}
	}
	var runs []string
	for i := range 500 {
		runs = append(runs, fmt.Sprintf(`{"manifest":"group.all.m%d"}`, i))
	}
	if out, err := ask.DecodeAnswer([]byte(`{"runs":[` + strings.Join(runs, ",") + `]}`)); err != nil || len(out.Runs) != 500 {
		t.Errorf("%d runs, %v", len(out.Runs), err)
	}
}
