package targets

import (
	"slices"
	"time"

	"github.com/expr-lang/expr/ast"
)

// Result is the view of a result for expressions: one run of one resource on a node. The names match the documents of
// reports.
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
	// Error has all errors, one per line. Text describes the result in one line.
	Error string `expr:"error" json:"error"`
	Text  string `expr:"text" json:"text"`
	Noop  bool   `expr:"noop" json:"noop"`
	// Drift is set if the run repaired drift. Drifted names the differences, and Latency is the time until the repair.
	Drift         bool          `expr:"drift" json:"drift"`
	Drifted       string        `expr:"drifted" json:"drifted"`
	Latency       time.Duration `expr:"latency" json:"latency"`
	Duration      time.Duration `expr:"duration" json:"duration"`
	RunID         string        `expr:"run_id" json:"run_id"`
	CorrelationID string        `expr:"correlation_id" json:"correlation_id"`
	ID            string        `expr:"id" json:"id"`
}

// ResultWords are the possible values of some names of results.
type ResultWords struct{ Outcome, Cause []string }

// resultEnv is the environment of an expression over results.
type resultEnv struct {
	Result
	Age    func(time.Time) any `expr:"age"`
	Step   func(any) bool      `expr:"__step"`
	Charge func(any, bool) any `expr:"__charge"`
}

// ResultNames returns the names in expressions over results, in the order of the documentation.
func ResultNames() []string {
	return []string{
		"node", "time", "manifest", "revision", "type", "name", "resource", "provider", "alias", "outcome", "cause", "error", "text", "noop", "drift", "drifted", "latency", "duration",
		"run_id", "correlation_id", "id",
	}
}

// Results is a compiled expression over results.
type Results struct{ *Expression }

// CompileResults compiles an expression over results, see Compile.
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

// Evaluator returns an evaluator of the expression. Once done is closed, Match returns ErrEnded. Ages are computed from the
// current time.
func (r Results) Evaluator(done <-chan struct{}) *ResultEvaluator {
	out := &ResultEvaluator{bounds: newBounds(r.program)}
	out.done = done
	out.env.Step, out.env.Charge, out.env.Age = out.step, out.charge, out.age

	return out
}

// Match reports whether a result matches. The error is about this result.
func (e *ResultEvaluator) Match(r Result) (bool, error) {
	e.env.Result = r

	return e.run(&e.env)
}

// NodeNames returns the names in expressions over nodes that are values of a node.
func NodeNames() []string {
	return slices.DeleteFunc(nodeNames(), func(name string) bool { return name == "group" || name == namePackage || name == "age" })
}
