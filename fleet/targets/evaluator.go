package targets

import (
	"errors"
	"fmt"

	"github.com/musterfleet/muster/model"
)

// Limits of the evaluation for one node, because the node controls its labels and facts.
const (
	// maxSteps is the maximum number of elements that any, all, none and count visit.
	maxSteps = 20_000
	// maxText limits the bytes of values that operators and functions read: a short expression can read the same long
	// text for each element of a list.
	maxText = 4 << 20
	// maxMemory is the budget of the language, in elements.
	maxMemory = 10_000
)

var (
	// ErrFactsNeeded means that the expression depends on the facts of a node.
	ErrFactsNeeded = errors.New("facts needed")
	// ErrInventoryNeeded means that the expression depends on the installed packages of a node.
	ErrInventoryNeeded = errors.New("inventory needed")
	// ErrEnded means that the evaluation was ended, see Evaluator.Until.
	ErrEnded = errors.New("the evaluation was ended")
	// ErrTooCostly means that the expression reads too much data of a node.
	ErrTooCostly = fmt.Errorf("the expression looks at more than %d elements or %d MiB of text of this node", maxSteps, maxText>>20)
)

// Evaluator evaluates one expression for many nodes. One goroutine uses it.
type Evaluator struct {
	bounds
	env       env
	documents Documents
}

// Documents are the stored documents of a node; nil means not read.
type Documents struct {
	Facts     model.Facts
	Installed *Installed
}

// Evaluator returns an evaluator of the expression. It computes ages from the current time.
func (e *Expression) Evaluator() *Evaluator {
	out := &Evaluator{bounds: newBounds(e.program)}
	out.env.Group = out.env.isMember
	out.env.Step, out.env.Charge = out.step, out.charge
	out.env.Age = out.age
	out.env.GetFacts = out.getFacts
	out.env.Package = out.getPackage

	return out
}

// Until ends evaluations when done is closed: Match then returns ErrEnded. It returns e.
func (e *Evaluator) Until(done <-chan struct{}) *Evaluator {
	e.done = done

	return e
}

// Match reports whether a node matches. The error wraps ErrFactsNeeded or ErrInventoryNeeded if
// the result depends on a document that was not read, and ErrTooCostly at the limit of an
// evaluation. Any other error means that a value of this node has an unexpected type.
func (e *Evaluator) Match(n Node, documents Documents) (bool, error) {
	e.documents = documents
	e.env.set(n)

	return e.run(&e.env)
}

// getFacts returns the facts of the node.
func (e *Evaluator) getFacts() map[string]any {
	if e.documents.Facts == nil {
		panic(ErrFactsNeeded)
	}

	return e.documents.Facts
}
