package ask

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
)

// Results collects the results of one request from reports: the first final answer of each node. The sender of the
// request does not matter. One goroutine uses it.
type Results struct {
	id, protocol string
	expected     map[string]bool
	answers      map[string]model.EnsureResponse
	missing      int
}

// NewResults returns the results of the request with an id on some nodes, or on all nodes without any. Other protocols
// do not count, because the sender of a run can choose the id of another request.
func NewResults(id, protocol string, nodes []string) *Results {
	r := &Results{id: id, protocol: protocol, expected: map[string]bool{}, answers: map[string]model.EnsureResponse{}}
	for _, node := range nodes {
		r.expected[node] = true
	}
	r.missing = len(r.expected)

	return r
}

// Add adds a report and returns its answer. It returns false if the report is not an answer to the request, or the node
// has already answered.
func (r *Results) Add(report model.Report) (model.EnsureResponse, bool) {
	if report.Kind != model.KindEnsure || report.Type != r.protocol || report.CorrelationID != r.id || len(r.expected) > 0 && !r.expected[report.Node] {
		return model.EnsureResponse{}, false
	}
	if _, known := r.answers[report.Node]; known {
		return model.EnsureResponse{}, false
	}
	var answer model.EnsureResponse
	if err := json.Unmarshal(report.Data, &answer); err != nil {
		answer = model.EnsureResponse{Phase: model.EnsureFailed, Error: "invalid answer: " + err.Error()}
	}
	if !final(answer) {
		return model.EnsureResponse{}, false
	}
	// Only the node in the subject is verified, not the node in the document.
	answer.Node = report.Node
	r.answers[report.Node] = answer
	r.missing--

	return answer, true
}

// Read adds reports until the results are complete or there are no more. onAnswer, if set, is called for each answer.
func (r *Results) Read(all iter.Seq2[model.Report, error], onAnswer func(model.EnsureResponse)) error {
	for report, err := range all {
		if err != nil {
			return err
		}
		if answer, isNew := r.Add(report); isNew && onAnswer != nil {
			onAnswer(answer)
		}
		if r.Complete() {
			return nil
		}
	}

	return nil
}

// HasAnswer reports whether a node has answered.
func (r *Results) HasAnswer(node string) bool { _, known := r.answers[node]; return known }

// Progress returns the number of nodes that have answered.
func (r *Results) Progress() Progress {
	return Progress{Expected: len(r.expected), Acknowledged: len(r.answers), Finished: len(r.answers)}
}

// Complete reports whether all expected nodes have answered, false without expected nodes.
func (r *Results) Complete() bool { return len(r.expected) > 0 && r.missing == 0 }

// Merge replaces the answers of unfinished nodes with their results.
func (e *Ensured) Merge(results *Results) {
	for i, a := range e.Answers {
		if result, is := results.answers[a.Node]; is && !final(a) {
			e.Answers[i] = result
		}
	}
	e.Unfinished = slices.DeleteFunc(e.Unfinished, func(node string) bool { _, is := results.answers[node]; return is })
}

// Ensured returns the answers so far. Expected nodes without an answer are missing if they are stopped, silent or
// unknown, else pending.
func (r *Results) Ensured(known []model.Node) *Ensured {
	out := &Ensured{Answers: []model.EnsureResponse{}}
	for _, node := range slices.Sorted(maps.Keys(r.answers)) {
		out.Answers = append(out.Answers, r.answers[node])
	}
	away := map[string]bool{}
	for _, n := range known {
		away[n.Node] = n.Stopped() || n.Silent
	}
	for _, node := range slices.Sorted(maps.Keys(r.expected)) {
		_, answered := r.answers[node]
		isAway, isKnown := away[node]
		switch {
		case answered:
		case isAway || !isKnown:
			out.Missing = append(out.Missing, node)
		default:
			out.Pending = append(out.Pending, node)
		}
	}

	return out
}
