package ask

import (
	"slices"

	"github.com/musterfleet/muster/model"
)

// Ensured is the answers to one request.
type Ensured struct {
	// ID is that of the request, empty where it is not shown.
	ID string `json:"id,omitempty"`
	// Answers are the last of each node, by node.
	Answers []model.EnsureResponse `json:"answers"`
	// Missing are the nodes that did not answer.
	Missing []string `json:"missing,omitempty"`
	// Queued are those that did not answer, and for which the request is queued.
	Queued []string `json:"queued,omitempty"`
	// Unfinished are those that acknowledged the request and did not finish it in time.
	Unfinished []string `json:"unfinished,omitempty"`
	// Pending are those of which no result is known yet, where only reports are read.
	Pending []string `json:"pending,omitempty"`
	// NotAsked are those whose batch did not begin.
	NotAsked []string `json:"not_asked,omitempty"`
	// Stopped is why, where it was decided so.
	Stopped string `json:"stopped,omitempty"`
	// States are those of all nodes, see NodeStates; missing until they are set.
	States map[string]State `json:"states,omitempty"`
}

// OK reports whether all answered or have the request queued, and nothing failed.
// Without any node it reports false.
func (e *Ensured) OK() bool {
	return len(e.Answers)+len(e.Queued) > 0 && len(e.Missing)+len(e.Unfinished)+len(e.Pending)+len(e.NotAsked) == 0 && !slices.ContainsFunc(e.Answers, Failed)
}

// Failures returns how many nodes failed, did not answer or did not finish, each once.
func (e *Ensured) Failures() int {
	out := len(e.Missing) + len(e.Unfinished)
	for _, a := range e.Answers {
		if Failed(a) && final(a) { // else it is one of the unfinished
			out++
		}
	}

	return out
}

// Add adds what came of other nodes.
func (e *Ensured) Add(other *Ensured) {
	e.Answers = append(e.Answers, other.Answers...)
	e.Missing = append(e.Missing, other.Missing...)
	e.Queued = append(e.Queued, other.Queued...)
	e.Unfinished = append(e.Unfinished, other.Unfinished...)
}

// State is what is known of a request on a node.
type State string

// The states of a request.
const (
	StateAccepted  State = "accepted"
	StateRunning   State = "running"
	StateDone      State = "done"
	StateFailed    State = "failed"
	StateExpired   State = "expired"
	StateCancelled State = "cancelled"
	// StateUnknown is that of a cancelled request which the node does not know.
	StateUnknown     State = "unknown"
	StateUnreachable State = "unreachable"
	StateQueued      State = "queued"
	StatePending     State = "no result"
	StateNotAsked    State = "not asked"
)

// States returns all states, in the order in which they are shown.
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

// StateOf returns the state that an answer tells.
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

// Failed reports whether an answer is that of a failure.
func Failed(r model.EnsureResponse) bool {
	return r.Error != "" || r.Phase == model.EnsureFailed || r.Phase == model.EnsureExpired || r.Phase == model.EnsureCancelled || r.State != nil && !r.State.OK()
}

// final reports whether an answer is a node's last one. One without a phase is.
func final(r model.EnsureResponse) bool { return r.Phase.Final() || r.Phase == "" }
