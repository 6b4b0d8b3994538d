package targets

import (
	"slices"
	"time"

	"github.com/expr-lang/expr/ast"
)

// Result is what one run did to one resource on a node, as an expression sees it. The names are
// those of the documents of reports.
type Result struct {
	Node     string    `expr:"node" json:"node"`
	Time     time.Time `expr:"time" json:"time"`
	Manifest string    `expr:"manifest" json:"manifest"`
	Revision uint64    `expr:"revision" json:"revision"`
	Type     string    `expr:"type" json:"type"`
	Name     string    `expr:"name" json:"name"`
	Resource string    `expr:"resource" json:"resource"`
	Provider string    `expr:"provider" json:"provider"`
	Alias    string    `expr:"alias" json:"alias"`
	Outcome  string    `expr:"outcome" json:"outcome"`
	Cause    string    `expr:"cause" json:"cause"`
	// Error has all of its errors, one a line; Text is what happened, in a line.
	Error string `expr:"error" json:"error"`
	Text  string `expr:"text" json:"text"`
	Noop  bool   `expr:"noop" json:"noop"`
	// Drift reports whether it repaired drift, Drifted what differed, and Latency how long it
	// was so.
	Drift         bool          `expr:"drift" json:"drift"`
	Drifted       string        `expr:"drifted" json:"drifted"`
	Latency       time.Duration `expr:"latency" json:"latency"`
	Duration      time.Duration `expr:"duration" json:"duration"`
	RunID         string        `expr:"run_id" json:"run_id"`
	CorrelationID string        `expr:"correlation_id" json:"correlation_id"`
	ID            string        `expr:"id" json:"id"`
}

// ResultWords are the words that some names of results can have.
type ResultWords struct{ Outcome, Cause []string }

// resultEnv is what a program over results reads.
type resultEnv struct {
	Result
	Age    func(time.Time) any `expr:"age"`
	Step   func(any) bool      `expr:"__step"`
	Charge func(any, bool) any `expr:"__charge"`
}

// ResultNames are the names of expressions over results, in the order of the documentation.
func ResultNames() []string {
	return []string{
		"node", "time", "manifest", "revision", "type", "name", "resource", "provider", "alias", "outcome", "cause", "error", "text", "noop", "drift", "drifted", "latency", "duration",
		"run_id", "correlation_id", "id",
	}
}

// Results is an expression over results that compiled.
type Results struct{ *Expression }

// CompileResults compiles an expression over results, as Compile does over nodes.
func CompileResults(text string, w ResultWords) (Results, error) {
	e, err := compile(text, vocabulary{
		what: whatResult, env: resultEnv{}, names: append(ResultNames(), "age"), functions: []string{"age"},
		mentions: InResults,
		words:    map[Space]words{SpaceOutcome: {"outcome", w.Outcome}, SpaceCause: {"cause", w.Cause}},
		wordsOf: func(n ast.Node) (string, []string) {
			switch n, _ := n.(*ast.IdentifierNode); {
			case n == nil:
				return "", nil
			case n.Value == "outcome":
				return n.Value, w.Outcome
			case n.Value == "cause":
				return n.Value, w.Cause
			default:
				return "", nil
			}
		},
	})

	return Results{e}, err
}

// ResultEvaluator evaluates one expression for many results. One goroutine uses it.
type ResultEvaluator struct {
	bounds
	env resultEnv
}

// Evaluator returns what evaluates the expression until done is closed: Match returns ErrEnded
// then. Ages are those of now.
func (r Results) Evaluator(done <-chan struct{}) *ResultEvaluator {
	out := &ResultEvaluator{bounds: newBounds(r.program)}
	out.done = done
	out.env.Step, out.env.Charge, out.env.Age = out.step, out.charge, out.age

	return out
}

// Match reports whether a result matches. Its error is about this result.
func (e *ResultEvaluator) Match(r Result) (bool, error) {
	e.env.Result = r

	return e.run(&e.env)
}

// NodeNames are the names of expressions over nodes that are values of theirs.
func NodeNames() []string {
	return slices.DeleteFunc(nodeNames(), func(name string) bool { return name == "group" || name == namePackage || name == "age" })
}
