package ask

import (
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
