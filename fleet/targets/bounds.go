package targets

import (
	"errors"
	"time"

	"github.com/expr-lang/expr/vm"
)

// bounds runs a program repeatedly, each time within limits.
type bounds struct {
	program *vm.Program
	vm      vm.VM
	now     time.Time
	steps   int
	read    int
	done    <-chan struct{}
}

func newBounds(program *vm.Program) bounds {
	return bounds{program: program, vm: vm.VM{MemoryBudget: maxMemory}, now: time.Now()}
}

// run runs the program over an env that uses the functions of b.
func (b *bounds) run(env any) (bool, error) {
	if b.isEnded() {
		return false, ErrEnded
	}
	b.steps, b.read = 0, 0
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

// isEnded reports whether no further evaluation may start.
func (b *bounds) isEnded() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// step counts an element that the expression visits and returns its condition.
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

// charge counts the bytes that an operator or a function reads of a value, and returns the value. Without deep it counts
// only the number of elements of a list or mapping.
func (b *bounds) charge(v any, deep bool) any {
	b.add(v, deep)
	if b.isEnded() {
		panic(ErrEnded)
	}

	return v
}

// add adds the size of a value to the bytes read.
func (b *bounds) add(v any, deep bool) {
	const element = 8
	switch v := v.(type) {
	case string:
		b.read += len(v)
	case []any:
		b.read += element * len(v)
		for i := 0; deep && i < len(v); i++ {
			b.add(v[i], deep)
		}
	case map[string]any:
		if deep {
			b.read += element * len(v)
			for _, value := range v {
				b.add(value, deep)
			}
		}
	}
	if b.read > maxText {
		panic(ErrTooCostly)
	}
}

// age returns the time since t, nil for a zero time.
func (b *bounds) age(t time.Time) any {
	if t.IsZero() {
		return nil
	}

	return b.now.Sub(t)
}
