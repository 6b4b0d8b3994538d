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

// requests are the newest requests, by the place of their first answer.
type requests struct {
	*bounded[*RequestRow]
	// byKey are the retained requests, see keyOf. votes are the claims of their answers.
	byKey map[string]*RequestRow
	votes map[string]*votes
	// answerers are the nodes that answered them.
	answerers *answerers
}

// votes are the claims of the answers about a request. A single node may lie, so the majority decides.
type votes struct {
	sender   vote[model.Sender]
	resource vote[string]
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

func newRequests() requests {
	r := requests{newBounded[*RequestRow](maxRequests), map[string]*RequestRow{}, map[string]*votes{}, &answerers{of: map[*RequestRow]map[string]bool{}}}
	r.dropped = func(it *item[*RequestRow]) {
		key := keyOf(it.value.Resource, it.value.ID)
		delete(r.byKey, key)
		delete(r.votes, key)
		r.answerers.end(it.value)
	}

	return r
}

// add counts an answer. The request uses the share of the answering node, because a node may answer a request
// that does not exist.
func (r requests) add(at position, t *excerpt) {
	e := &t.Event
	key := keyOf(e.Resource, e.CorrelationID)
	row := r.byKey[key]
	if row == nil {
		row = &RequestRow{ID: e.CorrelationID, Resource: cmp.Or(e.Resource, unnamed), First: e.Time, Last: e.Time}
		r.byKey[key], r.votes[key] = row, &votes{}
		r.answerers.begin(row)
		r.put(r.newItem(e.Node, at, row))
		if r.byKey[key] != row {
			return // the list is full of newer requests
		}
	}
	if !r.answerers.add(row, e.Node) {
		return
	}
	r.boundAnswerers()
	row.Answers++
	r.votes[key].describe(row, t)
	if e.Time.Before(row.First) {
		row.First = e.Time
	}
	if e.Time.After(row.Last) {
		row.Last = e.Time
	}
	switch {
	case e.Outcome.IsFailure(), e.Outcome == model.OutcomeUnmet:
		row.Failed++
	case e.Outcome == model.OutcomeChanged, e.Outcome == model.OutcomeRefreshed:
		row.Changed++
	}
}

// boundAnswerers forgets the answering nodes of the oldest requests.
func (r requests) boundAnswerers() {
	if r.answerers.count <= maxAnswerers {
		return
	}
	r.all.Ascend(func(it *item[*RequestRow]) bool {
		r.answerers.clear(it.value)
		return r.answerers.count > maxAnswerers
	})
}

// describe sets the row of a request from its answers, one of which is new. Answers of older agents lack the
// sender, and refusals lack the request.
func (v *votes) describe(row *RequestRow, t *excerpt) {
	if t.from != (model.Sender{}) {
		v.sender.add(t.from)
		from := v.sender.value
		row.By, row.Nodes, row.To, row.On = from.By, from.Nodes, from.To, from.On
	}
	if t.Resource != "" && t.Resource != unnamed {
		v.resource.add(t.Resource)
		row.Resource = v.resource.value
	}
}

// answeredRequest is a request with its answering nodes.
type answeredRequest struct {
	RequestRow
	// By are the remembered nodes that answered.
	By map[string]bool
	// SameID means that a run request and another request have the id. This is one of them.
	SameID bool
}

// answered returns an answered request with an id, and whether it is known. With run it returns the run
// request. Without run it returns another request, or the run request if there is no other. The number of
// answers does not matter, because a node may answer any id.
func (l *activityLog) answered(id string, run bool) (out answeredRequest, known bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	asRun, other := l.requests.byKey[keyOf(ofRun, id)], l.requests.byKey[id]
	found := other
	if run || other == nil {
		found = asRun
	}
	if found == nil {
		return answeredRequest{}, false
	}
	if kept := l.requests.answerers.of[found]; kept != nil {
		return answeredRequest{*found, maps.Clone(kept), asRun != nil && other != nil}, true
	}
	answered := map[string]bool{}
	l.events.newest(0, func(it *item[happened]) bool {
		if it.value.kind == model.KindEnsure && it.value.correlation == id && (it.value.resource == ofRun) == found.IsRun() {
			answered[it.siblings.node] = true
		}
		return true
	})

	return answeredRequest{*found, answered, asRun != nil && other != nil}, true
}

// Requests returns the answered requests, newest first.
func (l *activityLog) Requests() []RequestRow {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := []RequestRow{}
	l.requests.newest(0, func(it *item[*RequestRow]) bool {
		out = append(out, *it.value)
		return true
	})

	return out
}

// maxAnswerers limits the remembered answering nodes of all requests.
const maxAnswerers = 100_000

// answerers are the nodes that answered requests. They are stored separately from the answers, because a
// flooding node loses its own answers.
type answerers struct {
	// of are the nodes by request, nil if they are not remembered any more.
	of    map[*RequestRow]map[string]bool
	count int
}

// begin starts remembering the nodes of a request.
func (a *answerers) begin(row *RequestRow) { a.of[row] = map[string]bool{} }

// add records a node that answered, and reports whether it is new.
func (a *answerers) add(row *RequestRow, node string) bool {
	all := a.of[row]
	if all[node] {
		return false
	}
	if all != nil {
		all[node] = true
		a.count++
	}

	return true
}

// clear forgets the nodes of a request.
func (a *answerers) clear(row *RequestRow) {
	a.count -= len(a.of[row])
	a.of[row] = nil
}

// end forgets a request that is no longer retained.
func (a *answerers) end(row *RequestRow) {
	a.clear(row)
	delete(a.of, row)
}

// Request returns an answered request with the nodes that did not answer, and whether it is known. With run
// it returns the run request. Without run it returns another request, or the run request if there is no
// other.
//
// The targets are evaluated now, because the list of nodes is not stored. The result is valid only if it has
// as many nodes as the sender declared. The number of answers proves nothing, because a node may answer
// without being asked.
func (f *Fleet) Request(id string, run bool) (RequestDetail, bool) {
	found, is := f.answered(id, run)
	if !is {
		return RequestDetail{}, false
	}
	row, answered := found.RequestRow, found.By
	out := RequestDetail{Progress: f.Progress(), RequestRow: row, Missing: []string{}, Others: []string{}, SameID: found.SameID, Answered: slices.Sorted(maps.Keys(answered))}
	switch {
	case out.Nodes == 0:
		out.Unknown = "the sender did not say how many nodes it asked, or the agents are of an earlier version"
	case out.To == "" && out.On == "":
		out.Unknown = "the sender did not say which nodes it asked, or the target is long"
		if out.Answers >= out.Nodes {
			out.Unknown = "as many answered as were asked, but " + out.Unknown
		}
	case len(answered) < out.Answers:
		out.Unknown = "not all of its answers are kept any more"
	default:
		out.Missing, out.Others, out.Unknown = unanswered(row, answered, f.reportedTargets)
	}

	return out, true
}

// unanswered returns the nodes that did not answer, and the nodes that answered without being asked, or the
// reason why they are unknown. targets returns the current targets.
func unanswered(r RequestRow, answered map[string]bool, targets func(to, on string) ([]string, error)) (missing, others []string, unknown string) {
	asked, err := targets(r.To, r.On)
	if err != nil {
		return []string{}, []string{}, "its target cannot be evaluated: " + firstLine(err.Error(), maxText)
	}
	if len(asked) != r.Nodes {
		return []string{}, []string{}, fmt.Sprintf("%d of %d nodes answered, but the target now selects other nodes", r.Answers, r.Nodes)
	}
	missing, others = []string{}, []string{}
	wasAsked := map[string]bool{}
	for _, name := range asked {
		if wasAsked[name] = true; !answered[name] {
			missing = append(missing, name)
		}
	}
	for name := range answered {
		if !wasAsked[name] {
			others = append(others, name)
		}
	}
	slices.Sort(others)

	return missing, others, ""
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
