package ask

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
)

// Ensured is the result of one request.
type Ensured struct {
	// ID is the id of the request, empty if it is not shown.
	ID string `json:"id,omitempty"`
	// Answers has the last answer of each node, ordered by node.
	Answers []model.EnsureResponse `json:"answers"`
	// Missing are the nodes that did not answer.
	Missing []string `json:"missing,omitempty"`
	// Queued are nodes without an answer that have the request in their queue.
	Queued []string `json:"queued,omitempty"`
	// Unfinished are the nodes that acknowledged the request but did not finish in time.
	Unfinished []string `json:"unfinished,omitempty"`
	// Pending are the nodes without a result when the results are read from reports only.
	Pending []string `json:"pending,omitempty"`
	// NotAsked are the nodes of batches that did not start.
	NotAsked []string `json:"not_asked,omitempty"`
	// Stopped is the reason why no further batch started.
	Stopped string `json:"stopped,omitempty"`
	// States is the result of NodeStates, for documents.
	States map[string]State `json:"states,omitempty"`
}

// OK reports whether there is a node, and each finished without failure or has the request queued.
func (e *Ensured) OK() bool {
	return len(e.Answers)+len(e.Queued) > 0 && len(e.Missing)+len(e.Unfinished)+len(e.Pending)+len(e.NotAsked) == 0 && !slices.ContainsFunc(e.Answers, Failed)
}

// Failures returns the number of nodes that failed, did not answer or did not finish.
func (e *Ensured) Failures() int {
	out := len(e.Missing) + len(e.Unfinished)
	for _, a := range e.Answers {
		if Failed(a) && final(a) { // else it is one of the unfinished
			out++
		}
	}

	return out
}

// FinishedAnswers returns the answers of the nodes that finished in time.
func (e *Ensured) FinishedAnswers() []model.EnsureResponse {
	unfinished := map[string]bool{}
	for _, node := range e.Unfinished {
		unfinished[node] = true
	}

	return slices.DeleteFunc(slices.Clone(e.Answers), func(a model.EnsureResponse) bool { return unfinished[a.Node] })
}

// Equal lists nodes with equal values. Value is the value of the first one.
type Equal[T any] struct {
	Nodes []string
	Value T
}

// GroupEqual groups values by key, the largest group first.
func GroupEqual[T any](all []T, of func(T) (node, key string)) []Equal[T] {
	var out []Equal[T]
	positions := map[string]int{}
	for _, value := range all {
		node, key := of(value)
		i, known := positions[key]
		if !known {
			i = len(out)
			positions[key] = i
			out = append(out, Equal[T]{Value: value})
		}
		out[i].Nodes = append(out[i].Nodes, node)
	}
	slices.SortStableFunc(out, func(a, b Equal[T]) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })

	return out
}

// Add adds the results of other nodes.
func (e *Ensured) Add(other *Ensured) {
	e.Answers = append(e.Answers, other.Answers...)
	e.Missing = append(e.Missing, other.Missing...)
	e.Queued = append(e.Queued, other.Queued...)
	e.Unfinished = append(e.Unfinished, other.Unfinished...)
}

// State is the state of a request or change on a node.
type State string

// The states of a request.
const (
	StateAccepted  State = "accepted"
	StateRunning   State = "running"
	StateDone      State = "done"
	StateFailed    State = "failed"
	StateExpired   State = "expired"
	StateCancelled State = "cancelled"
	// StateUnknown means that the node does not know the cancelled request.
	StateUnknown     State = "unknown"
	StateUnreachable State = "unreachable"
	StateQueued      State = "queued"
	StatePending     State = "no result"
	StateNotAsked    State = "not asked"
)

// States returns all states in display order.
func States() []State {
	return []State{StateDone, StateFailed, StateExpired, StateCancelled, StateUnknown, StateRunning, StateAccepted, StatePending, StateUnreachable, StateQueued, StateNotAsked}
}

// NodeStates returns the state of the request on every node.
func (e *Ensured) NodeStates() map[string]State {
	out := map[string]State{}
	for state, nodes := range map[State][]string{StateUnreachable: e.Missing, StateQueued: e.Queued, StatePending: e.Pending, StateNotAsked: e.NotAsked} {
		for _, node := range nodes {
			out[node] = state
		}
	}
	for _, a := range e.Answers {
		out[a.Node] = StateOf(a)
	}

	return out
}

// StateOf returns the state for an answer.
func StateOf(a model.EnsureResponse) State {
	switch {
	case a.Phase == model.EnsureExpired:
		return StateExpired
	case a.Phase == model.EnsureCancelled && a.Unknown:
		return StateUnknown
	case a.Phase == model.EnsureCancelled:
		return StateCancelled
	case Failed(a):
		return StateFailed
	case a.Phase == model.EnsureAcknowledged:
		return StateAccepted
	case a.Phase == model.EnsureRunning:
		return StateRunning
	default:
		return StateDone
	}
}

// Failed reports whether an answer reports a failure.
func Failed(r model.EnsureResponse) bool {
	return r.Error != "" || r.Phase == model.EnsureFailed || r.Phase == model.EnsureExpired || r.Phase == model.EnsureCancelled || r.State != nil && !r.State.OK()
}

// final reports whether an answer is the last one of a node. An answer without a phase is final.
func final(r model.EnsureResponse) bool { return r.Phase.Final() || r.Phase == "" }

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

// maxMissing is how many bytes an answer may omit, because another version of muster may omit fields.
const maxMissing = 64 << 10

// DecodeAnswer decodes an answer. It rejects an answer that is much shorter than its own encoding: such an
// answer omits fields that nodes always write, to use a lot of memory here.
func DecodeAnswer(data []byte) (model.EnsureResponse, error) {
	var out model.EnsureResponse
	if err := json.Unmarshal(data, &out); err != nil {
		return model.EnsureResponse{}, fmt.Errorf("invalid answer: %w", err)
	}
	if encoded, err := json.Marshal(out); err != nil || len(encoded) > 4*len(data)+maxMissing {
		return model.EnsureResponse{}, errors.New("invalid answer: too many fields are missing")
	}

	return out, nil
}
