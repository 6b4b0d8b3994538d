package view

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

const (
	// factsAge is for how long the nodes stay selected that an expression selects by facts: all
	// facts of a fleet are read for it.
	factsAge = 30 * time.Second
	// factsPatience is how long that may take, and at most the wait for others before, patience how
	// long each may without facts.
	factsPatience  = 20 * time.Second
	targetPatience = 5 * time.Second
	// reportedFactsPatience and reportedPatience are those of an expression that a node reported.
	reportedFactsPatience = 5 * time.Second
	reportedPatience      = 500 * time.Millisecond
	// maxSelections is how many expressions are remembered.
	maxSelections = 16
)

// ErrSlowTarget is an expression that could not be evaluated in time.
var ErrSlowTarget = errors.New("the target expression takes too long")

// selector evaluates expressions: one that depends on facts and one that does not at the same time,
// since whoever may look at the fleet writes them.
type targetEvaluator struct {
	plain, facts                 chan struct{}
	plainPatience, factsPatience time.Duration
	// keepsAll is that whatever came of an expression is remembered, also where it takes no facts, or too long.
	keepsAll bool

	mu sync.Mutex
	// byExpression has what came of expressions.
	byExpression map[string]targetResult
}

func newTargetEvaluator() *targetEvaluator {
	return &targetEvaluator{
		plain: make(chan struct{}, 1), facts: make(chan struct{}, 1), plainPatience: targetPatience, factsPatience: factsPatience, byExpression: map[string]targetResult{},
	}
}

// newReportedSelector evaluates expressions that nodes reported. A node may report any: they hold up none that somebody
// wrote, and each takes little time, and that once in a while, however often it is looked at.
func newReportedEvaluator() *targetEvaluator {
	s := newTargetEvaluator()
	s.plainPatience, s.factsPatience, s.keepsAll = reportedPatience, reportedFactsPatience, true

	return s
}

// selection is what an expression selected, or why that is not known.
type targetResult struct {
	made      time.Time
	matches   map[string]bool
	undecided []fleet.Undecided
	warnings  []string
	err       error
}

// selectNodes returns which nodes an expression matches, and those of which nobody knows. The error
// is a *target.Error, wraps ErrSlowTarget, or is why facts cannot be read.
func (a *inventory) selectNodes(s *targetEvaluator, on string, all []*nodeState) (targetResult, error) {
	e, err := fleet.CompileTarget(on)
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
		return targetResult{}, fmt.Errorf("%w: others are evaluated", ErrSlowTarget)
	}
	if known, is := s.known(on); is { // whoever was before made it
		return known, known.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	found, err := a.choose(ctx, e, all)
	switch {
	case err != nil && ctx.Err() != nil:
		found = targetResult{made: time.Now(), err: fmt.Errorf("%w: it was ended after %s; write it with fewer elements and patterns", ErrSlowTarget, most)}
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

// chosenAtOnce is how many nodes are looked at together: copies of all would take the memory of a fleet once more.
const chosenAtOnce = 500

// choose evaluates an expression. The facts of all nodes are read at once.
func (a *inventory) choose(ctx context.Context, e *targets.Expression, all []*nodeState) (targetResult, error) {
	most := chosenAtOnce
	if readsDocuments(e) {
		most = max(len(all), 1)
	}
	out, byName := targetResult{matches: map[string]bool{}}, map[string]*nodeState{}
	s := fleet.Selector{Statuses: func(n model.Node) []fleet.RolloutStatus { return rolloutsOf(&byName[n.Node].Node) }, Facts: a.options.Facts, Inventories: a.options.Inventories}
	var nodes []model.Node
	for part := range slices.Chunk(all, most) {
		nodes = slices.Grow(nodes[:0], len(part))
		clear(byName)
		for _, n := range part {
			nodes, byName[n.name()] = append(nodes, n.Node.Node), n
		}
		found, err := s.Select(ctx, e, nodes)
		if err != nil {
			return targetResult{}, err
		}
		maps.Copy(out.matches, found.Names())
		out.undecided = append(out.undecided, found.Undecided...)
		out.warnings = found.Warnings
	}
	if len(all) > most { // the warnings of each part cover only its own nodes
		clear(byName)
		for _, n := range all {
			byName[n.name()] = n
		}
		out.warnings = fleet.Warnings(e, func(yield func(*model.Node) bool) {
			for _, n := range all {
				if !yield(&n.Node.Node) {
					return
				}
			}
		}, func(n *model.Node) []fleet.RolloutStatus { return s.Statuses(*n) })
	}
	out.made = time.Now()

	return out, nil
}

// known returns what came of an expression lately.
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
