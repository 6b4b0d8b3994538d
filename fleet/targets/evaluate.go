package targets

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

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

func (e *Evaluator) getFacts() map[string]any {
	if e.documents.Facts == nil {
		panic(ErrFactsNeeded)
	}

	return e.documents.Facts
}

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
	switch at, is := errors.AsType[*file.Error](err); {
	case errors.Is(err, ErrFactsNeeded), errors.Is(err, ErrInventoryNeeded), errors.Is(err, ErrTooCostly), errors.Is(err, ErrEnded):
		return false, at.Prev
	case is:
		return false, errors.New(plain(at.Message))
	case err != nil:
		return false, err
	}

	return truth(result)
}

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

// Node is the view of a node for expressions.
type Node struct {
	*model.Node
	// State is the state of the node as a whole.
	State string
	// Reason is the reason why the state is not ok. It may be empty if the expression does not use it, see UsesReason.
	Reason string
	// Manifest returns the manifest that the node runs under a name. It may be nil if the expression does not use it, see
	// UsesStatus.
	Manifest func(name string) Manifest
}

// Manifest is a manifest that a node runs. The zero value is no manifest.
type Manifest struct {
	Status   string `expr:"status"`
	Revision uint64 `expr:"revision"`
	Outcome  string `expr:"outcome"`
}

// The functions inside the program. Users can write only abs.
const (
	nameFacts   = "__facts"
	nameStep    = "__step"
	nameCharge  = "__charge"
	nameTruth   = "__truth"
	nameGet     = "__get"
	nameList    = "__list"
	nameText    = "__text"
	nameCompare = "__compare"
	nameCompute = "__compute"
	nameAbs     = "abs"
)

// functions returns the functions of the language that expressions may use. The others are of no use in a target or could
// build large values.
func functions() []string {
	return []string{"all", "any", "none", "count", "len", "lower", "upper", "trim", nameAbs}
}

// env is the environment of a program, in the order of the documentation. Programs read facts with __facts instead of Facts, so facts are needed only if the
// evaluation reaches them.
type env struct {
	Node     string                `expr:"node"`
	Host     string                `expr:"host"`
	Version  string                `expr:"version"`
	Groups   []string              `expr:"groups"`
	Group    func(string) bool     `expr:"group"`
	Labels   map[string]string     `expr:"labels"`
	Facts    map[string]any        `expr:"facts"`
	State    string                `expr:"state"`
	Reason   string                `expr:"reason"`
	Package  func(string) any      `expr:"package"`
	Manifest func(string) Manifest `expr:"manifest"`
	Paused   bool                  `expr:"paused"`
	Message  string                `expr:"message"`
	Heard    time.Time             `expr:"heard"`
	Started  time.Time             `expr:"started"`
	Age      func(time.Time) any   `expr:"age"`
	Outbox   int                   `expr:"outbox"`
	Clock    float64               `expr:"clock"`
	GetFacts func() map[string]any `expr:"__facts"`
	Step     func(any) bool        `expr:"__step"`
	Charge   func(any, bool) any   `expr:"__charge"`
}

func (e *env) set(n Node) {
	e.Node, e.Host, e.Version = n.Node.Node, n.Host, n.Version
	e.Groups, e.Labels = n.Groups, n.Labels
	e.Reason, e.Message, e.Paused = n.Reason, n.Message, n.Node.Paused != nil
	e.Heard, e.Started = n.Heard, n.Started
	e.State, e.Outbox, e.Clock = n.State, n.Outbox, n.Clock.Offset.Std().Seconds()
	e.Manifest = n.Manifest
}

// isMember reports whether the node is in a group; every node is in all.
func (e *env) isMember(group string) bool {
	return group == model.GroupAll || slices.Contains(e.Groups, group)
}
