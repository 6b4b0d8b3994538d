package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// defaultSilence is how long a node may take to acknowledge a request, which it does at once, before it counts as
// not answering: the server may just be back, and nodes connect again one by one.
const defaultSilence = 7 * time.Second

// awaySilence is that of a node which is stopped, unreachable or unknown: it may just be back.
const awaySilence = 5 * time.Second

// defaultQuiet is how long no answer may come before the results are looked for in reports, too.
const defaultQuiet = 2 * time.Second

// Asker sends requests to nodes.
type Asker interface {
	// Ask sends a request to a target and yields each answer as it comes, several
	// of one node, until ctx ends or nothing more can come. Nodes that are awaited were
	// there lately: where they are not, they may be about to connect again.
	Ask(ctx context.Context, target fleet.Target, awaited []string, req model.EnsureRequest) iter.Seq2[model.EnsureResponse, error]
}

// ManyAsker is an Asker that sends a request to many nodes at the cost of one question.
type ManyAsker interface {
	// AskNodes is Ask for several nodes.
	AskNodes(ctx context.Context, nodes []string, req model.EnsureRequest) iter.Seq2[model.EnsureResponse, error]
}

// PatientAsker is an Asker that knows of nodes that cannot answer yet.
type PatientAsker interface {
	// Patience returns how much longer nodes have for their first answer, as the connection to them
	// was lost; 0 where it was not.
	Patience() time.Duration
}

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

// Progress is the progress of a request.
type Progress struct{ Expected, Acknowledged, Finished int }

// Ensurer requests one resource of many nodes.
type Ensurer struct {
	Asker Asker
	Nodes fleet.NodeLister
	// Silence is how long a node may take for its first answer, 0 for 7 seconds; one that is not known to be there
	// has at most 5.
	Silence time.Duration
	// Reported, if set, yields the final answers of some nodes as they report them, until ctx ends: one whose agent
	// was ended and started again meanwhile answers no more. It is called at most once, when nodes that accepted the
	// request have not finished it, and no answer came for Quiet.
	Reported func(ctx context.Context, nodes []string) iter.Seq[model.EnsureResponse]
	// Quiet is 2 seconds where it is 0.
	Quiet time.Duration
	// Once is that the first answer of a node is awaited, and no other.
	Once bool
	// OnAnswer, if set, gets each node's final answer as it comes.
	OnAnswer func(model.EnsureResponse)
	// OnProgress, if set, gets the progress of the request.
	OnProgress func(Progress)
	// OnSilent, if set, gets the nodes that did not acknowledge the request within Quiet.
	OnSilent func(nodes []string)
}

// Ensure sends the request to the targets and collects their answers until all
// known nodes and all that answered have finished, or ctx ends. It returns what it
// collected with an error too.
func (e *Ensurer) Ensure(ctx context.Context, targets []fleet.Target, req model.EnsureRequest) (*Ensured, error) {
	known, err := e.Nodes.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	isGroup := func(t fleet.Target) bool { return t.Node == "" }
	c := &collection{id: req.ID, expected: expectedOf(targets, known), there: there(known), named: !slices.ContainsFunc(targets, isGroup), last: map[string]model.EnsureResponse{}, ensurer: e}
	ctx, cancel := context.WithCancel(ctx)
	var senders sync.WaitGroup
	answers := make(chan answer[model.EnsureResponse])
	senders.Go(func() { askAll(ctx, e.questions(ctx, targets, known, req), answers) })
	c.run(ctx, answers, &senders)
	cancel()
	senders.Wait()

	return c.ensured(), errors.Join(c.errs...)
}

// NodesOf returns the nodes of targets, sorted: the named ones, and the known members of groups.
func NodesOf(targets []fleet.Target, known []model.Node) []string {
	return slices.Sorted(maps.Keys(expectedOf(targets, known)))
}

// expectedOf returns the nodes of targets: the named ones, and the known members of groups.
func expectedOf(targets []fleet.Target, nodes []model.Node) map[string]bool {
	expected := map[string]bool{}
	for _, t := range targets {
		if t.Node != "" {
			expected[t.Node] = true
			continue
		}
		for _, n := range nodes {
			if t.Includes(n.NodeState) {
				expected[n.Node] = true
			}
		}
	}

	return expected
}

// isThere reports whether a node was heard of lately.
func isThere(n model.Node) bool { return !n.Stopped() && !n.Silent }

// there returns the names of the nodes that were heard of lately.
func there(known []model.Node) map[string]bool {
	out := make(map[string]bool, len(known))
	for _, n := range known {
		if isThere(n) {
			out[n.Node] = true
		}
	}

	return out
}

// awaited returns the nodes of a target that were heard of lately.
func awaited(t fleet.Target, known []model.Node) []string {
	var out []string
	for _, n := range known {
		if isThere(n) && t.Includes(n.NodeState) {
			out = append(out, n.Node)
		}
	}

	return out
}

// answer is an answer of a target.
type answer[T any] struct {
	response T
	err      error
}

// question is what is asked of some nodes.
type question[T any] struct {
	whom    string
	answers iter.Seq2[T, error]
}

// askAll asks all questions at once. It closes answers when nothing more can come, which is
// soon after ctx ended.
func askAll[T any](ctx context.Context, all []question[T], answers chan<- answer[T]) {
	defer close(answers)
	var senders sync.WaitGroup
	defer senders.Wait()
	for _, q := range all {
		senders.Go(func() {
			for r, err := range q.answers {
				if err != nil {
					err = fmt.Errorf("ask %s: %w", q.whom, err)
				}
				select {
				case answers <- answer[T]{r, err}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// questions returns what is asked of the targets: one question for all nodes among them,
// where the asker can, and one for each other target.
func (e *Ensurer) questions(ctx context.Context, targets []fleet.Target, known []model.Node, req model.EnsureRequest) []question[model.EnsureResponse] {
	var out []question[model.EnsureResponse]
	many, nodes := e.together(targets)
	if many != nil {
		out = append(out, question[model.EnsureResponse]{fmt.Sprintf("%d nodes", len(nodes)), many.AskNodes(ctx, nodes, req)})
	}
	for _, t := range targets {
		if many == nil || t.Node == "" {
			out = append(out, question[model.EnsureResponse]{t.String(), e.Asker.Ask(ctx, t, awaited(t, known), req)})
		}
	}

	return out
}

// together returns the nodes among the targets, and what asks them as one question; nil
// where they are asked one by one.
func (e *Ensurer) together(targets []fleet.Target) (ManyAsker, []string) {
	many, is := e.Asker.(ManyAsker)
	var nodes []string
	for _, t := range targets {
		if t.Node != "" {
			nodes = append(nodes, t.Node)
		}
	}
	if !is || len(nodes) < 2 {
		return nil, nil
	}

	return many, nodes
}

// patience returns how much longer nodes have for their first answer.
func (e *Ensurer) patience() time.Duration {
	if p, is := e.Asker.(PatientAsker); is {
		return p.Patience()
	}

	return 0
}

// collection is the answers to one request so far. One goroutine uses it.
type collection struct {
	id       string
	ensurer  *Ensurer
	expected map[string]bool
	// there are the nodes that were heard of lately.
	there map[string]bool
	// named is that no others were asked: one that says it was had the question of another node.
	named    bool
	last     map[string]model.EnsureResponse
	finished int
	errs     []error
	// late is set when only those without an answer are waited for that are there, silent when none is any more.
	late, silent bool
}

// run takes answers into account until the request is complete, nothing more can come, or ctx ends. What reads
// reports is one of the senders, and ends with ctx.
func (c *collection) run(ctx context.Context, answers <-chan answer[model.EnsureResponse], senders *sync.WaitGroup) {
	begun, silence := time.Now(), cmp.Or(c.ensurer.Silence, defaultSilence)
	silent := time.NewTimer(min(silence, awaySilence))
	defer silent.Stop()
	pause := cmp.Or(c.ensurer.Quiet, defaultQuiet)
	quiet, slow := time.NewTimer(pause), time.NewTimer(pause)
	defer quiet.Stop()
	defer slow.Stop()
	reported := make(chan model.EnsureResponse)
	if c.ensurer.Reported == nil {
		quiet.Stop()
	}
	c.progress()
	for isReading := false; !c.complete(); {
		select {
		case a, open := <-answers:
			if !open {
				return
			}
			c.add(ctx, a)
			if c.ensurer.Reported != nil && !isReading {
				quiet.Reset(pause)
			}
		case r := <-reported:
			c.add(ctx, answer[model.EnsureResponse]{response: r})
		case <-quiet.C:
			if len(c.last) == c.finished {
				quiet.Reset(pause)
				continue
			}
			isReading = true
			nodes := c.open()
			senders.Go(func() { forward(ctx, c.ensurer.Reported(ctx, nodes), reported) })
		case <-slow.C:
			if nodes := c.missing(); c.ensurer.OnSilent != nil && len(nodes) > 0 {
				c.ensurer.OnSilent(nodes)
			}
		case <-silent.C:
			if more := c.ensurer.patience(); more > 0 {
				silent.Reset(more)
				continue
			}
			c.late = true
			if more := silence - time.Since(begun); more > 0 {
				silent.Reset(more)
				continue
			}
			c.silent = true
		case <-ctx.Done():
			return
		}
	}
}

// forward hands on what is yielded, until ctx ends.
func forward(ctx context.Context, from iter.Seq[model.EnsureResponse], to chan<- model.EnsureResponse) {
	for r := range from {
		select {
		case to <- r:
		case <-ctx.Done():
			return
		}
	}
}

// open returns the nodes that have not finished, as far as they are known.
func (c *collection) open() []string {
	out := c.missing()
	for node, r := range c.last {
		if !final(r) {
			out = append(out, node)
		}
	}

	return out
}

func (c *collection) add(ctx context.Context, a answer[model.EnsureResponse]) {
	if a.err != nil {
		if ctx.Err() == nil {
			c.errs = append(c.errs, a.err)
		}
		return
	}
	r := a.response
	before, known := c.last[r.Node]
	if known && (final(before) || c.ensurer.Once) || r.ID != "" && r.ID != c.id || c.named && !c.expected[r.Node] {
		return
	}
	c.last[r.Node] = r
	if final(r) || c.ensurer.Once {
		c.finished++
		if c.ensurer.OnAnswer != nil {
			c.ensurer.OnAnswer(r)
		}
	}
	c.progress()
}

func (c *collection) progress() {
	if c.ensurer.OnProgress != nil {
		c.ensurer.OnProgress(Progress{Expected: max(len(c.expected), len(c.last)), Acknowledged: len(c.last), Finished: c.finished})
	}
}

// complete reports whether every node has finished. Without a known node there
// may be unknown ones, which get their time.
func (c *collection) complete() bool {
	if c.finished < len(c.last) {
		return false
	}

	isAwaited := func(node string) bool { return !c.late || c.there[node] }

	return c.silent || len(c.expected) > 0 && !slices.ContainsFunc(c.missing(), isAwaited)
}

func (c *collection) missing() []string {
	var out []string
	for _, node := range slices.Sorted(maps.Keys(c.expected)) {
		if _, answered := c.last[node]; !answered {
			out = append(out, node)
		}
	}

	return out
}

func (c *collection) ensured() *Ensured {
	out := &Ensured{Answers: []model.EnsureResponse{}, Missing: c.missing()}
	for _, node := range slices.Sorted(maps.Keys(c.last)) {
		out.Answers = append(out.Answers, c.last[node])
		if !final(c.last[node]) {
			out.Unfinished = append(out.Unfinished, node)
		}
	}

	return out
}
