package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/target"
	"github.com/musterfleet/muster/model"
)

const (
	// factsAge is for how long the nodes stay selected that an expression selects by facts: all
	// facts of a fleet are read for it.
	factsAge = 30 * time.Second
	// factsPatience is how long that may take, and at most the wait for others before, patience how
	// long each may without facts.
	factsPatience = 20 * time.Second
	patience      = 5 * time.Second
	// maxSelections is how many of these expressions are remembered.
	maxSelections = 16
)

// ErrSlowTarget is an expression that could not be evaluated in time.
var ErrSlowTarget = errors.New("the target expression takes too long")

// selector evaluates expressions: one that depends on facts and one that does not at the same time,
// since whoever may look at the fleet writes them.
type selector struct {
	plain, facts chan struct{}
	patience     time.Duration

	mu sync.Mutex
	// byExpression has what expressions selected that depend on facts.
	byExpression map[string]selection
}

func newSelector() *selector {
	return &selector{plain: make(chan struct{}, 1), facts: make(chan struct{}, 1), patience: patience, byExpression: map[string]selection{}}
}

// selection is what an expression selected.
type selection struct {
	made      time.Time
	matches   map[string]bool
	undecided []fleet.Undecided
}

// selectNodes returns which nodes an expression matches, and those of which nobody knows. The error
// is a *target.Error, wraps ErrSlowTarget, or is why facts cannot be read.
func (a *Nodes) selectNodes(on string, all []*state) (selection, error) {
	e, err := fleet.CompileTarget(on)
	if err != nil {
		return selection{}, err
	}
	s, turn, most := a.selector, a.selector.plain, a.selector.patience
	if e.UsesFacts() {
		turn, most = s.facts, factsPatience
	}
	if known, is := s.known(on); is {
		return known, nil
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-time.After(most):
		return selection{}, fmt.Errorf("%w: others are evaluated", ErrSlowTarget)
	}
	if known, is := s.known(on); is { // whoever was before made it
		return known, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	found, err := a.choose(ctx, e, all)
	switch {
	case err != nil && ctx.Err() != nil:
		return selection{}, fmt.Errorf("%w: it was ended after %s; write it with fewer elements and patterns", ErrSlowTarget, most)
	case err != nil:
		return selection{}, fmt.Errorf("read the facts of nodes: %w", err)
	case e.UsesFacts():
		s.keep(on, found)
	}

	return found, nil
}

// chosenAtOnce is how many nodes are looked at together: copies of all would take the memory of a fleet once more.
const chosenAtOnce = 500

// choose evaluates an expression. The facts of all nodes are read at once.
func (a *Nodes) choose(ctx context.Context, e *target.Expression, all []*state) (selection, error) {
	most := chosenAtOnce
	if e.UsesFacts() {
		most = max(len(all), 1)
	}
	out, byName := selection{matches: map[string]bool{}}, map[string]*state{}
	s := fleet.Selector{Statuses: func(n model.Node) []fleet.RolloutStatus { return rolloutsOf(&byName[n.Node].Node) }, Facts: a.options.Facts}
	var nodes []model.Node
	for part := range slices.Chunk(all, most) {
		nodes = slices.Grow(nodes[:0], len(part))
		clear(byName)
		for _, n := range part {
			nodes, byName[n.name()] = append(nodes, n.Node.Node), n
		}
		found, err := s.Select(ctx, e, nodes)
		if err != nil {
			return selection{}, err
		}
		maps.Copy(out.matches, found.Names())
		out.undecided = append(out.undecided, found.Undecided...)
	}
	out.made = time.Now()

	return out, nil
}

// known returns what an expression selected lately by facts.
func (s *selector) known(on string) (selection, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, is := s.byExpression[on]

	return known, is && time.Since(known.made) < factsAge
}

func (s *selector) keep(on string, found selection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byExpression) >= maxSelections {
		clear(s.byExpression)
	}
	s.byExpression[on] = found
}
