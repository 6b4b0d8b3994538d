package target

import (
	"errors"
	"time"

	"github.com/expr-lang/expr/vm"
)

// bounds runs a program again and again, each time within bounds.
type bounds struct {
	program *vm.Program
	vm      vm.VM
	now     time.Time
	steps   int
	done    <-chan struct{}
}

func newBounds(program *vm.Program) bounds {
	return bounds{program: program, vm: vm.VM{MemoryBudget: maxMemory}, now: time.Now()}
}

// run runs the program over an env, whose functions are those of b.
func (b *bounds) run(env any) (bool, error) {
	if b.isEnded() {
		return false, ErrEnded
	}
	b.steps = 0
	result, err := b.vm.Run(b.program, env)
	switch at := asFileError(err); {
	case errors.Is(err, ErrFactsNeeded), errors.Is(err, ErrInventoryNeeded), errors.Is(err, ErrTooCostly), errors.Is(err, ErrEnded):
		return false, at.Prev
	case at != nil:
		return false, errors.New(plain(at.Message))
	case err != nil:
		return false, err
	}

	return truth(result)
}

// isEnded reports whether no further evaluation may begin.
func (b *bounds) isEnded() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// step counts an element that the expression looks at, and returns what it found.
func (b *bounds) step(found any) bool {
	if b.steps++; b.steps > maxSteps {
		panic(ErrTooCostly)
	}
	if b.isEnded() {
		panic(ErrEnded)
	}
	is, err := truth(found)
	if err != nil {
		panic(err)
	}

	return is
}

// age returns how long ago a time was; of none it is missing.
func (b *bounds) age(t time.Time) any {
	if t.IsZero() {
		return nil
	}

	return b.now.Sub(t)
}
