package target

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr/vm"

	"github.com/musterfleet/muster/model"
)

// Bounds of the evaluation for one node: its labels and facts are what the node says.
const (
	// maxSteps is how many elements any, all, none and count look at.
	maxSteps = 20_000
	// maxMemory is the budget of the language, in elements.
	maxMemory = 10_000
)

var (
	// ErrFactsNeeded is an expression that depends on the facts of a node.
	ErrFactsNeeded = errors.New("facts needed")
	// ErrEnded is an evaluation that was ended, see Evaluator.Until.
	ErrEnded = errors.New("the evaluation was ended")
	// ErrTooCostly is an expression that looks at too much of a node.
	ErrTooCostly = fmt.Errorf("the expression looks at more than %d elements of this node", maxSteps)
)

// Evaluator evaluates one expression for many nodes. One goroutine uses it.
type Evaluator struct {
	program *vm.Program
	vm      vm.VM
	env     env
	facts   model.Facts
	steps   int
	done    <-chan struct{}
}

// Evaluator returns what evaluates the expression.
func (e *Expression) Evaluator() *Evaluator {
	out := &Evaluator{program: e.program, vm: vm.VM{MemoryBudget: maxMemory}}
	out.env.Group = out.env.isMember
	out.env.Step = out.step
	out.env.GetFacts = out.getFacts

	return out
}

// Until ends evaluations once done is closed: Match returns ErrEnded then. It returns e.
func (e *Evaluator) Until(done <-chan struct{}) *Evaluator {
	e.done = done

	return e
}

// isEnded reports whether there is to be no evaluation any more.
func (e *Evaluator) isEnded() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// Match reports whether a node matches. Without facts, which are nil, the error wraps
// ErrFactsNeeded where the result depends on them. Any other error is about this node,
// whose facts have another form than the expression expects, or wraps ErrTooCostly.
func (e *Evaluator) Match(n Node, facts model.Facts) (bool, error) {
	if e.isEnded() {
		return false, ErrEnded
	}
	e.facts, e.steps = facts, 0
	e.env.set(n)
	result, err := e.vm.Run(e.program, &e.env)
	switch at := asFileError(err); {
	case errors.Is(err, ErrFactsNeeded), errors.Is(err, ErrTooCostly), errors.Is(err, ErrEnded):
		return false, at.Prev
	case at != nil:
		return false, errors.New(plain(at.Message))
	case err != nil:
		return false, err
	}

	return truth(result)
}

// step counts an element that the expression looks at, and returns what it found.
func (e *Evaluator) step(found any) bool {
	if e.steps++; e.steps > maxSteps {
		panic(ErrTooCostly)
	}
	if e.isEnded() {
		panic(ErrEnded)
	}
	is, err := truth(found)
	if err != nil {
		panic(err)
	}

	return is
}

// getFacts returns the facts of the node.
func (e *Evaluator) getFacts() map[string]any {
	if e.facts == nil {
		panic(ErrFactsNeeded)
	}

	return e.facts
}
