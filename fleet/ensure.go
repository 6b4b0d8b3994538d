package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// DefaultSilence is how long a node may take to say that it has a request,
// which it does at once, before it counts as not answering.
const DefaultSilence = 5 * time.Second

// Asker asks nodes.
type Asker interface {
	// Ask sends a request to a target and gives each answer as it comes, several
	// of one node, until ctx ends or nothing more can come.
	Ask(ctx context.Context, target Target, req model.EnsureRequest) iter.Seq2[model.EnsureResponse, error]
}

// Ensured is how many nodes answered one request.
type Ensured struct {
	// Answers are the last of each node, by node.
	Answers []model.EnsureResponse `json:"answers"`
	// Missing are the nodes that did not answer.
	Missing []string `json:"missing,omitempty"`
	// Left are those that did not answer, and have the request waiting for them.
	Left []string `json:"left,omitempty"`
	// Unfinished are those that have the request and did not come to its end in time.
	Unfinished []string `json:"unfinished,omitempty"`
}

// OK says that all answered, or have the request waiting for them, and nothing
// failed. That nobody was asked is not OK.
func (e *Ensured) OK() bool {
	return len(e.Answers)+len(e.Left) > 0 && len(e.Missing)+len(e.Unfinished) == 0 && !slices.ContainsFunc(e.Answers, Failed)
}

// Failed says that an answer is that of a failure.
func Failed(r model.EnsureResponse) bool {
	return r.Error != "" || r.Phase == model.EnsureFailed || r.Phase == model.EnsureExpired || r.State != nil && !r.State.OK()
}

// final also takes an answer without a phase, which says how it ended.
func final(r model.EnsureResponse) bool { return r.Phase.Final() || r.Phase == "" }

// Progress is how far a request has come.
type Progress struct{ Expected, Acknowledged, Finished int }

// Ensurer asks many nodes for one resource.
type Ensurer struct {
	Asker Asker
	Nodes NodeLister
	// Silence is how long a node may take for its first answer; 0 is DefaultSilence.
	Silence time.Duration
	// OnAnswer, if set, is told of each node's final answer as it comes.
	OnAnswer func(model.EnsureResponse)
	// OnProgress, if set, is told how far the request has come.
	OnProgress func(Progress)
}

// Ensure asks the targets and gathers their answers until all that are known
// and all that answered have come to an end, or ctx ends. What was gathered is
// given with an error too.
func (e *Ensurer) Ensure(ctx context.Context, targets []Target, req model.EnsureRequest) (*Ensured, error) {
	expected, err := e.expected(ctx, targets)
	if err != nil {
		return nil, err
	}
	g := &gathering{req: req, expected: expected, last: map[string]model.EnsureResponse{}, ensurer: e}
	ctx, cancel := context.WithCancel(ctx)
	answers, wait := e.ask(ctx, targets, req)
	g.run(ctx, answers, e.silence())
	cancel()
	wait()

	return g.ensured(), errors.Join(g.errs...)
}

// expected are the nodes that must answer: those named, and the known ones that
// belong to a group.
func (e *Ensurer) expected(ctx context.Context, targets []Target) (map[string]bool, error) {
	nodes, err := e.Nodes.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	expected := map[string]bool{}
	for _, t := range targets {
		if t.Node != "" {
			expected[t.Node] = true
		}
		for _, n := range nodes {
			if t.Includes(n.NodeState) {
				expected[n.Node] = true
			}
		}
	}

	return expected, nil
}

func (e *Ensurer) silence() time.Duration {
	if e.Silence == 0 {
		return DefaultSilence
	}

	return e.Silence
}

// answer is what came from a target.
type answer struct {
	response model.EnsureResponse
	err      error
}

// ask asks all targets at once. The channel is closed when nothing more can
// come; wait returns then, which is soon after ctx ended.
func (e *Ensurer) ask(ctx context.Context, targets []Target, req model.EnsureRequest) (<-chan answer, func()) {
	answers := make(chan answer)
	var asking sync.WaitGroup
	for _, t := range targets {
		asking.Go(func() {
			for r, err := range e.Asker.Ask(ctx, t, req) {
				if err != nil {
					err = fmt.Errorf("ask %s: %w", t, err)
				}
				select {
				case answers <- answer{r, err}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	closed := make(chan struct{})
	go func() {
		asking.Wait()
		close(answers)
		close(closed)
	}()

	return answers, func() { <-closed }
}

// gathering is the answers to one request so far. One goroutine uses it.
type gathering struct {
	req      model.EnsureRequest
	ensurer  *Ensurer
	expected map[string]bool
	last     map[string]model.EnsureResponse
	finished int
	errs     []error
	// waited says that whoever has not answered by now does not answer.
	waited bool
}

func (g *gathering) run(ctx context.Context, answers <-chan answer, silence time.Duration) {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	g.progress()
	for !g.complete() {
		select {
		case a, open := <-answers:
			if !open {
				return
			}
			g.take(ctx, a)
		case <-timer.C:
			g.waited = true
		case <-ctx.Done():
			return
		}
	}
}

func (g *gathering) take(ctx context.Context, a answer) {
	if a.err != nil {
		if ctx.Err() == nil {
			g.errs = append(g.errs, a.err)
		}
		return
	}
	before, known := g.last[a.response.Node]
	foreign := a.response.ID != "" && a.response.ID != g.req.ID
	if foreign || known && final(before) {
		return
	}
	g.last[a.response.Node] = a.response
	if final(a.response) {
		g.finished++
		if g.ensurer.OnAnswer != nil {
			g.ensurer.OnAnswer(a.response)
		}
	}
	g.progress()
}

func (g *gathering) progress() {
	if g.ensurer.OnProgress != nil {
		g.ensurer.OnProgress(Progress{Expected: max(len(g.expected), len(g.last)), Acknowledged: len(g.last), Finished: g.finished})
	}
}

// complete says that nobody is left to wait for. Without a known node there may
// be some that have not said so yet, so they get their time.
func (g *gathering) complete() bool {
	if g.finished < len(g.last) {
		return false
	}
	if g.waited {
		return true
	}
	for node := range g.expected {
		if _, answered := g.last[node]; !answered {
			return false
		}
	}

	return len(g.expected) > 0
}

func (g *gathering) ensured() *Ensured {
	out := &Ensured{}
	for node, r := range g.last {
		out.Answers = append(out.Answers, r)
		if !final(r) {
			out.Unfinished = append(out.Unfinished, node)
		}
	}
	for node := range g.expected {
		if _, answered := g.last[node]; !answered {
			out.Missing = append(out.Missing, node)
		}
	}
	slices.SortFunc(out.Answers, func(a, b model.EnsureResponse) int { return strings.Compare(a.Node, b.Node) })
	slices.Sort(out.Missing)
	slices.Sort(out.Unfinished)

	return out
}
