package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// maxRequests limits the retained requests.
const maxRequests = 1000

// maxAnswered limits the remembered answering nodes of all requests.
const maxAnswered = 100_000

// requests are the newest requests, by the place of their first answer.
type requests struct {
	*bounded[*request]
	// byKey are the retained requests, see keyOf.
	byKey map[string]*request
	// remembered is the number of remembered answering nodes.
	remembered int
}

// request is a request with the claims of its answers. A single node may lie, so the majority decides.
type request struct {
	RequestRow
	sender   vote[model.Sender]
	resource vote[string]
	// answered are the nodes that answered, nil if they are not remembered any more. They are stored separately
	// from the answers, because a flooding node loses its own answers.
	answered map[string]bool
}

// vote is the majority value, as far as one stored value shows it: the last value with more votes than
// others.
type vote[T comparable] struct {
	value T
	lead  int
}

// add counts one vote.
func (v *vote[T]) add(value T) {
	switch {
	case value == v.value:
		v.lead++
	case v.lead > 0:
		v.lead--
	default:
		v.value, v.lead = value, 1
	}
}

// keyOf returns the key of a request: its kind and its id. A user who may only request runs could otherwise
// reuse the id of another request.
func keyOf(resource, id string) string {
	if resource == ofRun {
		return ofRun + " " + id
	}

	return id
}

func newRequests() *requests {
	r := &requests{bounded: newBounded[*request](maxRequests), byKey: map[string]*request{}}
	r.dropped = func(it *item[*request]) {
		delete(r.byKey, keyOf(it.value.Resource, it.value.ID))
		r.forgetAnswered(it.value)
	}

	return r
}

// add counts an answer. The request uses the share of the answering node, because a node may answer a request
// that does not exist.
func (r *requests) add(at position, t *excerpt) {
	e := &t.Event
	key := keyOf(e.Resource, e.CorrelationID)
	q := r.byKey[key]
	if q == nil {
		q = &request{RequestRow: RequestRow{ID: e.CorrelationID, Resource: cmp.Or(e.Resource, unnamed), First: e.Time, Last: e.Time}, answered: map[string]bool{}}
		r.byKey[key] = q
		r.put(r.newItem(e.Node, at, q))
		if r.byKey[key] != q {
			return // the list is full of newer requests
		}
	}
	if q.answered[e.Node] {
		return
	}
	if q.answered != nil {
		q.answered[e.Node] = true
		r.remembered++
		r.boundAnswered()
	}
	q.Answers++
	q.describe(t)
	if e.Time.Before(q.First) {
		q.First = e.Time
	}
	if e.Time.After(q.Last) {
		q.Last = e.Time
	}
	switch {
	case e.Outcome.IsFailure(), e.Outcome == model.OutcomeUnmet:
		q.Failed++
	case e.Outcome == model.OutcomeChanged, e.Outcome == model.OutcomeRefreshed:
		q.Changed++
	}
}

// boundAnswered forgets the answering nodes of the oldest requests.
func (r *requests) boundAnswered() {
	if r.remembered > maxAnswered {
		r.all.Ascend(func(it *item[*request]) bool {
			r.forgetAnswered(it.value)
			return r.remembered > maxAnswered
		})
	}
}

func (r *requests) forgetAnswered(q *request) {
	r.remembered -= len(q.answered)
	q.answered = nil
}

// describe sets the row from a new answer. Answers of older agents lack the sender, and refusals lack the request.
func (q *request) describe(t *excerpt) {
	if t.from != (model.Sender{}) {
		q.sender.add(t.from)
		from := q.sender.value
		q.By, q.Nodes, q.To, q.On = from.By, from.Nodes, from.To, from.On
	}
	if t.Resource != "" && t.Resource != unnamed {
		q.resource.add(t.Resource)
		q.Resource = q.resource.value
	}
}

// answered returns an answered request with an id and the nodes that answered, as far as they are known, and whether
// the request is known. With run it returns the run request. Without run it returns another request, or the run request
// if there is no other. The number of answers does not matter, because a node may answer any id.
func (l *activityLog) answered(id string, run bool) (out RequestDetail, by map[string]bool, known bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	asRun, other := l.requests.byKey[keyOf(ofRun, id)], l.requests.byKey[id]
	found := other
	if run || other == nil {
		found = asRun
	}
	if found == nil {
		return RequestDetail{}, nil, false
	}
	if by = maps.Clone(found.answered); by == nil {
		by = map[string]bool{}
		l.events.newest(0, func(it *item[Event]) bool {
			if e := it.value; e.Kind == model.KindEnsure && e.CorrelationID == id && (e.Resource == ofRun) == found.IsRun() {
				by[e.Node] = true
			}
			return true
		})
	}

	return RequestDetail{RequestRow: found.RequestRow, SameID: asRun != nil && other != nil, Answered: slices.Sorted(maps.Keys(by))}, by, true
}

// Requests returns the answered requests, newest first.
func (l *activityLog) Requests() []RequestRow {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := []RequestRow{}
	l.requests.newest(0, func(it *item[*request]) bool {
		out = append(out, it.value.RequestRow)
		return true
	})

	return out
}

// Request returns an answered request with the nodes that did not answer, and whether it is known. With run
// it returns the run request. Without run it returns another request, or the run request if there is no
// other.
//
// The targets are evaluated now, because the list of nodes is not stored. The result is valid only if it has
// as many nodes as the sender declared. The number of answers proves nothing, because a node may answer
// without being asked.
func (f *Fleet) Request(id string, run bool) (RequestDetail, bool) {
	out, answered, is := f.answered(id, run)
	if !is {
		return RequestDetail{}, false
	}
	out.Progress, out.Missing, out.Others = f.Progress(), []string{}, []string{}
	switch {
	case out.Nodes == 0:
		out.Unknown = "the sender did not say how many nodes it asked, or the agents are of an earlier version"
	case out.To == "" && out.On == "":
		out.Unknown = "the sender did not say which nodes it asked, or the target is long"
		if out.Answers >= out.Nodes {
			out.Unknown = "as many answered as were asked, but " + out.Unknown
		}
	case len(answered) < out.Answers:
		out.Unknown = "some of its answers are no longer stored"
	default:
		asked, err := f.reportedTargets(out.To, out.On)
		out.compare(asked, err, answered)
	}

	return out, true
}

// compare finds the targets that did not answer, and the nodes that answered without being targets, or the reason why
// they are unknown. asked are the sorted names of the current targets.
func (r *RequestDetail) compare(asked []string, err error, answered map[string]bool) {
	switch {
	case err != nil:
		r.Unknown = "its target cannot be evaluated: " + firstLine(err.Error(), maxText)
		return
	case len(asked) != r.Nodes:
		r.Unknown = fmt.Sprintf("%d of %d nodes answered, but the target now selects other nodes", r.Answers, r.Nodes)
		return
	}
	for _, name := range asked {
		if !answered[name] {
			r.Missing = append(r.Missing, name)
		}
	}
	for _, name := range r.Answered {
		if _, is := slices.BinarySearch(asked, name); !is {
			r.Others = append(r.Others, name)
		}
	}
}

// Answer is the final answer of one node to a request.
type Answer struct {
	Node    string        `json:"node"`
	Outcome model.Outcome `json:"outcome"`
	// ExitCode, Stdout and Stderr are the results of a command; ExitCode is nil if no command ran.
	ExitCode *int   `json:"exit_code,omitempty"`
	Stdout   string `json:"stdout,omitempty"`
	Stderr   string `json:"stderr,omitempty"`
	// Text summarizes the result.
	Text string `json:"text"`
	// Time is when the server stored the answer. Duration is how long the change took, in nanoseconds.
	Time     time.Time     `json:"time"`
	Duration time.Duration `json:"duration,omitempty"`
	// Runs are the results of a run request, by manifest.
	Runs []model.RequestedRun `json:"runs,omitempty"`
}

// Answers are the answers of nodes to a request.
type Answers struct {
	Answers []Answer `json:"answers"`
	// Incomplete is the reason why some answers are missing, empty if all were read.
	Incomplete string `json:"incomplete,omitempty"`
}

// EqualAnswers are the nodes with equal answers.
type EqualAnswers struct {
	Answer
	Nodes []Answer
}

// Equal groups answers with the same outcome, exit code, text and output. It sorts failures before others, larger
// groups before smaller ones, and the nodes of a group by name.
func (a Answers) Equal() []EqualAnswers {
	var out []EqualAnswers
	positions := map[string]int{}
	for _, answer := range a.Answers {
		code, _ := json.Marshal(answer.ExitCode) // an integer or null
		key := strings.Join([]string{string(answer.Outcome), string(code), answer.Text, answer.Stdout, answer.Stderr}, "\x00")
		i, known := positions[key]
		if !known {
			i = len(out)
			positions[key] = i
			out = append(out, EqualAnswers{Answer: answer})
		}
		out[i].Nodes = append(out[i].Nodes, answer)
	}
	for _, g := range out {
		slices.SortFunc(g.Nodes, func(a, b Answer) int { return cmp.Compare(a.Node, b.Node) })
	}
	slices.SortStableFunc(out, func(a, b EqualAnswers) int {
		return cmp.Or(a.rank()-b.rank(), len(b.Nodes)-len(a.Nodes))
	})

	return out
}

// rank returns 0 for failures, 1 for others.
func (a EqualAnswers) rank() int {
	if a.Outcome.IsFailure() || a.Outcome == model.OutcomeUnmet {
		return 0
	}

	return 1
}
