package view

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

const (
	// factsAge is the lifetime of a selection by facts, because it reads all facts of a fleet.
	factsAge = 30 * time.Second
	// factsPatience limits an evaluation with facts, and the wait for earlier ones. patience limits an
	// evaluation without facts.
	factsPatience  = 20 * time.Second
	targetPatience = 5 * time.Second
	// reportedFactsPatience and reportedPatience are the limits for expressions that a node reported.
	reportedFactsPatience = 5 * time.Second
	reportedPatience      = 500 * time.Millisecond
	// maxSelections limits the remembered expressions.
	maxSelections = 16
)

// ErrSlowTarget means that the evaluation of an expression takes too long.
var ErrSlowTarget = errors.New("the target expression takes too long")

// targetEvaluator evaluates target expressions, one with facts and one without at a time, because any user of the
// dashboard writes expressions.
type targetEvaluator struct {
	plain, facts                 chan struct{}
	plainPatience, factsPatience time.Duration
	// keepsAll means that all results are remembered, also failures and results without facts.
	keepsAll bool

	mu sync.Mutex
	// byExpression contains the results by expression.
	byExpression map[string]targetResult
}

func newTargetEvaluator(plain, facts time.Duration, keepsAll bool) *targetEvaluator {
	return &targetEvaluator{
		plain: make(chan struct{}, 1), facts: make(chan struct{}, 1), plainPatience: plain, factsPatience: facts, keepsAll: keepsAll, byExpression: map[string]targetResult{},
	}
}

type targetResult struct {
	made      time.Time
	known     int
	matches   map[string]bool
	undecided []targets.Undecided
	warnings  []string
	err       error
}

// selectNodes returns the nodes that an expression matches, and the nodes for which it cannot be evaluated.
// The error is a *targets.Error, wraps ErrSlowTarget, or is an error of reading facts.
func (a *inventory) selectNodes(s *targetEvaluator, on string, all nodeTable) (targetResult, error) {
	e, err := targets.Compile(on)
	if err != nil {
		return targetResult{}, err
	}
	turn, most := s.plain, s.plainPatience
	if readsDocuments(e) {
		turn, most = s.facts, s.factsPatience
	}
	if known, is := s.known(on); is {
		return known, known.err
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-time.After(most):
		return targetResult{}, fmt.Errorf("%w: other expressions are being evaluated", ErrSlowTarget)
	}
	if known, is := s.known(on); is { // evaluated while this call waited
		return known, known.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	found, err := a.choose(ctx, e, all)
	switch {
	case err != nil && ctx.Err() != nil:
		found = targetResult{made: time.Now(), err: fmt.Errorf("%w: stopped after %s; use fewer elements and patterns", ErrSlowTarget, most)}
	case err != nil:
		found = targetResult{made: time.Now(), err: fmt.Errorf("read the facts or inventories of nodes: %w", err)}
	}
	if s.keepsAll || readsDocuments(e) && err == nil {
		s.keep(on, found)
	}

	return found, found.err
}

// readsDocuments reports whether an expression may read facts or inventories of all nodes.
func readsDocuments(e *targets.Expression) bool { return e.UsesFacts() || e.UsesInventory() }

// choose evaluates an expression. It reads the facts of all nodes at once.
func (a *inventory) choose(ctx context.Context, e *targets.Expression, all nodeTable) (targetResult, error) {
	s := targets.Selector{Facts: a.options.Facts, Inventories: a.options.Inventories, Statuses: func(n model.Node) []fleet.RolloutStatus {
		return rolloutsOf(&all.get(n.Node).Node)
	}}
	nodes := make([]model.Node, len(all))
	for i, n := range all {
		nodes[i] = n.Node.Node
	}
	found, err := s.Select(ctx, e, nodes)
	if err != nil {
		return targetResult{}, err
	}

	return targetResult{made: time.Now(), matches: found.Names(), undecided: found.Undecided, warnings: found.Warnings}, nil
}

func (s *targetEvaluator) known(on string) (targetResult, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, is := s.byExpression[on]

	return known, is && time.Since(known.made) < factsAge
}

func (s *targetEvaluator) keep(on string, found targetResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byExpression) >= maxSelections {
		clear(s.byExpression)
	}
	s.byExpression[on] = found
}
