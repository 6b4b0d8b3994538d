package view_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// answerOf returns the answer of a node to a request of a sender.
func answerOf(node, id string, from *model.Sender) model.Report {
	r := document(node, model.KindEnsure, model.ProtocolEnsureResponse, model.OutcomeChanged, model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, Node: node, ID: id, Phase: model.EnsureDone, Sender: from})
	r.CorrelationID = id

	return r
}

// TestNodesWithoutAnAnswerAreNamed if the sender named targets.
func TestNodesWithoutAnAnswerAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from    *model.Sender
		missing []string
		others  []string
		unknown string
	}{
		"a group":                  {&model.Sender{By: "anna", Nodes: 4, To: "group.web"}, []string{"web3", "web4"}, nil, ""},
		"nodes, one never seen":    {&model.Sender{Nodes: 4, To: "node.web1 node.web2 node.web4 node.new"}, []string{"new", "web4"}, nil, ""},
		"an expression":            {&model.Sender{Nodes: 3, On: `group("web") && node != "web3"`}, []string{"web4"}, nil, ""},
		"everybody":                {&model.Sender{Nodes: 5, To: "group.all node.web1 group.web"}, []string{"db1", "web3", "web4"}, nil, ""},
		"all answered":             {&model.Sender{Nodes: 2, To: "node.web1 node.web2"}, []string{}, nil, ""},
		"who was not asked":        {&model.Sender{Nodes: 2, To: "node.web2 node.web4"}, []string{"web4"}, []string{"web1"}, ""},
		"as many, of nobody knows": {&model.Sender{Nodes: 2}, []string{}, nil, "as many answered as were asked, but the sender did not say which nodes"},
		"no sender":                {nil, []string{}, nil, "did not say how many nodes"},
		"no target":                {&model.Sender{By: "anna", Nodes: 4}, []string{}, nil, "did not say which nodes"},
		"a target that is long":    {&model.Sender{Nodes: 4, On: strings.Repeat("true || ", 200) + "true"}, []string{}, nil, "did not say which nodes"},
		"other nodes by now":       {&model.Sender{Nodes: 9, To: "group.web"}, []string{}, nil, "2 of 9 nodes answered, but the target now selects other nodes"},
		"an invalid expression":    {&model.Sender{Nodes: 9, On: `nope(`}, []string{}, nil, "its target cannot be evaluated: "},
		"what is no target at all": {&model.Sender{Nodes: 4, To: "site * node.> /etc"}, []string{}, nil, "selects other nodes"},
	} {
		f := view.New(view.Options{})
		for _, n := range []string{"web1", "web2", "web3", "web4"} {
			f.SetNode(model.Node{NodeState: model.NodeState{Node: n, Groups: []string{"web"}}})
		}
		f.SetNode(model.Node{NodeState: model.NodeState{Node: "db1"}})
		f.Add(message(1, time.Minute, answerOf("web1", "q1", c.from)))
		f.Add(message(2, time.Minute, answerOf("web2", "q1", c.from), answerOf("db1", "another", c.from)))
		got, known := f.Request("q1", false)
		if !known || got.Answers != 2 || !slices.Equal(got.Missing, c.missing) || got.Missing == nil || !slices.Equal(got.Others, c.others) || got.Others == nil || !strings.Contains(got.Unknown, c.unknown) || (got.Unknown == "") != (c.unknown == "") {
			t.Errorf("%s: %+v, %t", name, got, known)
		}
		if page := f.Events(view.EventQuery{Search: "Q1"}); len(page.Events) != 2 {
			t.Errorf("%s: %d events have the id", name, len(page.Events))
		}
	}
}

// TestTargetThatANodeReportedHoldsUpNobody: a node may invent a request with any target. The result is
// cached.
func TestTargetThatANodeReportedHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		f := view.New(view.Options{Facts: func(ctx context.Context, _ []string) iter.Seq2[model.NodeFacts, error] {
			return func(yield func(model.NodeFacts, error) bool) {
				if asked++; asked == 1 {
					<-ctx.Done()
					yield(model.NodeFacts{}, ctx.Err())
				}
			}
		}})
		f.SetNode(model.Node{NodeState: model.NodeState{Node: "web1"}})
		f.Add(message(1, time.Minute, answerOf("web1", "q1", &model.Sender{Nodes: 4, On: `facts.os == "a"`})))
		began := time.Now()
		answered := make(chan view.RequestDetail)
		go func() {
			got, _ := f.Request("q1", false)
			answered <- got
		}()
		synctest.Wait()
		if _, err := f.Nodes(view.NodeQuery{On: `facts.os == "b"`}); err != nil || time.Since(began) > 0 {
			t.Errorf("the expression of somebody else took %s: %v", time.Since(began), err)
		}
		first := <-answered
		began = time.Now()
		if again, _ := f.Request("q1", false); !strings.Contains(first.Unknown, "takes too long") || again.Unknown != first.Unknown || time.Since(began) > 0 || asked != 2 {
			t.Errorf("%q, then %q after %s, facts were read %d times", first.Unknown, again.Unknown, time.Since(began), asked)
		}
		<-time.After(time.Minute)
		if later, _ := f.Request("q1", false); !strings.Contains(later.Unknown, "selects other nodes") {
			t.Errorf("a minute later: %q", later.Unknown)
		}
	})
}

// TestRunsAreOtherRequests: a user with permission for runs only can reuse the id of another request.
// Refusals of such a run do not count as answers to the other request.
func TestRunsAreOtherRequests(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	from := &model.Sender{By: "anna", Nodes: 2, To: "node.web1 node.web2"}
	refused := document("web2", model.KindEnsure, model.ProtocolRunResponse, model.OutcomeFailed, model.EnsureResponse{Protocol: model.ProtocolRunResponse, ID: "q1", Phase: model.EnsureFailed, Error: "it expired"})
	refused.CorrelationID = "q1"
	f.Add(message(1, time.Minute, refused))
	if got, known := f.Request("q1", false); !known || got.Resource != "run" {
		t.Errorf("the run: %+v, %t", got, known)
	}
	f.Add(message(2, time.Minute, answerOf("web1", "q1", from)))
	if got, _ := f.Request("q1", false); got.Answers != 1 || got.Failed != 0 || got.By != "anna" || !slices.Equal(got.Missing, []string{"web2"}) {
		t.Errorf("%+v", got)
	}
	f.Add(message(3, time.Minute, answerOf("web2", "q1", from)))
	if got, _ := f.Request("q1", false); got.Answers != 2 || len(got.Missing) > 0 || len(f.Requests()) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestARunHidesNoOtherRequest: however many answer a run with the id of another request, each has its page, and says
// that there is the other.
func TestARunHidesNoOtherRequest(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	f.Add(message(1, time.Minute, answerOf("web1", "q1", nil)))
	if got, known := f.Request("q1", true); known {
		t.Errorf("no run has the id, there is %+v", got)
	}
	if got, _ := f.Request("q1", false); got.SameID {
		t.Errorf("%+v", got)
	}
	for i := range 3 {
		ran := document(fmt.Sprint("web", i), model.KindEnsure, model.ProtocolRunResponse, model.OutcomeStable, model.EnsureResponse{Protocol: model.ProtocolRunResponse, ID: "q1", Phase: model.EnsureDone})
		ran.CorrelationID = "q1"
		f.Add(message(uint64(i+2), time.Minute, ran))
	}
	if got, known := f.Request("q1", false); !known || got.IsRun() || got.Answers != 1 || !got.SameID {
		t.Errorf("%+v, %t", got, known)
	}
	if got, known := f.Request("q1", true); !known || !got.IsRun() || got.Answers != 3 || !got.SameID {
		t.Errorf("%+v, %t", got, known)
	}
}

// TestWhatWasAskedIsWhatMostSay: the first node that answers does not decide it.
func TestWhatWasAskedIsWhatMostSay(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{})
	for i, command := range []string{"uptime", "", "id", "id"} {
		answer := model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, ID: "q1", Phase: model.EnsureDone}
		if command != "" {
			answer.State = &model.Transaction{Type: "exec", Name: command}
		}
		r := document(fmt.Sprint("web", i), model.KindEnsure, model.ProtocolEnsureResponse, model.OutcomeChanged, answer)
		r.CorrelationID = "q1"
		f.Add(message(uint64(i+1), time.Minute, r))
	}
	if got, _ := f.Request("q1", false); got.Resource != "exec#id" || got.Answers != 4 {
		t.Errorf("%+v", got)
	}
}

// TestAnswersThatAreGone: the responders are known, up to a limit, after their answers were dropped, as for a
// flooding node. Beyond the limit no node is listed as unanswered.
func TestAnswersThatAreGone(t *testing.T) {
	t.Parallel()
	f := view.New(view.Options{Events: 3})
	from := &model.Sender{Nodes: 6, To: "node.n1 node.n2 node.n3 node.n4 node.n5 node.n6"}
	seq := uint64(0)
	answer := func(node, id string) {
		seq++
		f.Add(message(seq, time.Minute, answerOf(node, id, from)))
	}
	for i := range 5 {
		answer(fmt.Sprint("n", i+1), "q1")
	}
	answer("evil", "q1")
	for i := range 10_000 {
		answer("evil", fmt.Sprint("flood", i%100))
	}
	answer("evil", "q1")
	if got, known := f.Request("q1", false); !known || got.Answers != 6 || !slices.Equal(got.Missing, []string{"n6"}) || !slices.Equal(got.Others, []string{"evil"}) || got.Unknown != "" {
		t.Errorf("%+v, %t", got, known)
	}
	for id := range 10 {
		for i := range 10_001 {
			answer(fmt.Sprint("many", i), fmt.Sprint("large", id))
		}
	}
	if got, known := f.Request("q1", false); !known || len(got.Missing) != 0 || got.Unknown != "some of its answers are no longer stored" {
		t.Errorf("%+v, %t", got, known)
	}
	if got, known := f.Request("large9", false); !known || got.Answers != 10_001 || len(got.Others) != 10_001 {
		t.Errorf("%d answers, %d others, %q", got.Answers, len(got.Others), got.Unknown)
	}
	if _, known := f.Request("q2", false); known {
		t.Error("a request is known that nobody answered")
	}
}
