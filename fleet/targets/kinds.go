package targets

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/pkg/version"
)

// Package is the view of an installed package for expressions.
type Package struct {
	Node    string `expr:"node"`
	Name    string `expr:"name"`
	Version string `expr:"version"`
	Arch    string `expr:"arch"`
	Manager string `expr:"manager"`
	// incomplete is the reason why the inventory lacks versions; empty if it is complete.
	incomplete string
}

// packageEnv is the environment of an expression over packages.
type packageEnv struct {
	Package
	Step   func(any) bool      `expr:"__step"`
	Charge func(any, bool) any `expr:"__charge"`
}

// packageFields and resultFields are the indexes of the fields of rows, by their names in expressions.
var (
	packageFields = fieldsOf(Package{})
	resultFields  = fieldsOf(Result{})
)

func fieldsOf(row any) map[string]int {
	out := map[string]int{}
	for i, f := range reflect.VisibleFields(reflect.TypeOf(row)) {
		if name := f.Tag.Get("expr"); name != "" {
			out[name] = i
		}
	}

	return out
}

func valueOf(row any, fields map[string]int, name string) any {
	if i, known := fields[name]; known {
		return reflect.ValueOf(row).Elem().Field(i).Interface()
	}

	return nil
}

// Value returns the value of a column.
func (p Package) Value(column string) any { return valueOf(&p, packageFields, column) }

// Value returns the value of a column.
func (r Result) Value(column string) any { return valueOf(&r, resultFields, column) }

// PackageNames returns the names in expressions over packages, in the order of the documentation.
func PackageNames() []string { return namesIn(Package{}) }

// Query is a compiled expression over rows: packages or results.
type Query[Row any] struct {
	*Expression
	// env returns an environment that uses the functions of an evaluation, and the row in it.
	env func(*bounds) (env any, row *Row)
}

// RowEvaluator evaluates one expression for many rows. One goroutine uses it.
type RowEvaluator[Row any] struct {
	bounds
	env any
	row *Row
}

// Evaluator returns an evaluator of the expression. Once done is closed, Match returns ErrEnded. Ages are computed from the
// current time.
func (q Query[Row]) Evaluator(done <-chan struct{}) *RowEvaluator[Row] {
	out := &RowEvaluator[Row]{bounds: newBounds(q.program)}
	out.done = done
	out.env, out.row = q.env(&out.bounds)

	return out
}

// Match reports whether a row matches. The error is about this row, or wraps ErrEnded.
func (e *RowEvaluator[Row]) Match(row Row) (bool, error) {
	*e.row = row

	return e.run(e.env)
}

// CompilePackages compiles an expression over packages, see Compile. The functions over versions use the
// scheme of the package's manager unless the expression gives a scheme.
func CompilePackages(text string) (Query[Package], error) {
	e, err := compile(text, vocabulary{what: "query over packages", env: packageEnv{}, scheme: "manager", values: packageValues})

	return Query[Package]{e, func(b *bounds) (any, *Package) {
		env := &packageEnv{Step: b.step, Charge: b.charge}
		return env, &env.Package
	}}, err
}

// addScheme adds the manager as the scheme of a comparison with the version of a package.
func (p *patcher) addScheme(node *ast.Node, n *ast.CallNode, function string) {
	if function == nameUpstream || len(n.Arguments) != 2 {
		return
	}
	for _, argument := range n.Arguments {
		if of := versionOfPackage(argument); of != nil {
			ast.Patch(node, call(function, n.Arguments[0], n.Arguments[1], call(nameGet, of, &ast.StringNode{Value: "manager"})))
			return
		}
		if name, ok := argument.(*ast.IdentifierNode); ok && name.Value == "version" && p.scheme != "" {
			ast.Patch(node, call(function, n.Arguments[0], n.Arguments[1], &ast.IdentifierNode{Value: p.scheme}))
			return
		}
	}
}

// namePackage is the name of the function that returns an installed package of a node.
const namePackage = "package"

// Installed are the packages of a node that an expression names.
type Installed struct {
	byName map[string]*Package
	// incomplete is the reason why the inventory lacks versions or packages; empty if it is complete.
	incomplete string
}

// Installed returns the packages of an inventory that the expression names. If a package is installed
// in several versions, it returns the oldest, because queries look for old versions.
func (e *Expression) Installed(i model.Inventory) *Installed {
	out := &Installed{byName: map[string]*Package{}, incomplete: i.Incomplete}
	for _, p := range i.Packages {
		if !slices.Contains(e.packages, p.Name) {
			continue
		}
		known := out.byName[p.Name]
		if known != nil && known.Version != "" {
			order, err := version.CompareBy(known.Manager, p.Version, known.Version)
			if p.Manager != known.Manager || err == nil && order >= 0 {
				continue
			}
		}
		// Without copies, the strings would hold the whole inventory in memory.
		out.byName[strings.Clone(p.Name)] = &Package{
			Node: i.Node, Name: strings.Clone(p.Name), Version: strings.Clone(p.Version), Arch: strings.Clone(p.Arch), Manager: strings.Clone(p.Manager), incomplete: i.Incomplete,
		}
	}

	return out
}

// getPackage returns an installed package of the node, nil if it is not installed. It panics with ErrInventoryNeeded if the
// inventory was not read, and with an error if an incomplete inventory may lack the package.
func (e *Evaluator) getPackage(name string) any {
	installed := e.documents.Installed
	if installed == nil {
		panic(ErrInventoryNeeded)
	}
	p := installed.byName[name]
	switch {
	case p != nil:
		return p
	case installed.incomplete != "":
		panic(fmt.Errorf("its inventory may lack %s: %s", name, installed.incomplete))
	default:
		return nil
	}
}

// value returns a property of the package, nil for an unknown name. A version that an incomplete inventory lacks is an
// error.
func (p *Package) value(name any) (any, error) {
	if name == "version" && p.Version == "" && p.incomplete != "" {
		return nil, fmt.Errorf("its inventory has no version of %s: %s", p.Name, p.incomplete)
	}
	text, _ := name.(string)

	return p.Value(text), nil
}

func isCallOf(n ast.Node, function string) bool {
	c, _ := n.(*ast.CallNode)
	if c == nil {
		return false
	}
	callee, ok := c.Callee.(*ast.IdentifierNode)

	return ok && callee.Value == function
}

// checkPackageName rejects a package name that is not literal text: Installed has to know all names.
func (p *patcher) checkPackageName(n *ast.CallNode) {
	if !isCallOf(n, namePackage) || len(n.Arguments) != 1 {
		return
	}
	if _, ok := n.Arguments[0].(*ast.StringNode); !ok {
		p.refuse(n.Arguments[0], "the name of a package is not literal text", `write it in quotes, such as package("openssl")`)
	}
}

// checkPackageMember rejects an unknown property of a package.
func (p *patcher) checkPackageMember(n *ast.MemberNode) {
	name, ok := n.Property.(*ast.StringNode)
	if !ok || !isCallOf(n.Node, namePackage) || slices.Contains(PackageNames(), name.Value) {
		return
	}
	hint := "a package has " + strings.Join(PackageNames()[:4], ", ") + " and manager"
	if near := document.DidYouMean(name.Value, PackageNames()); near != "" {
		hint += "; " + near
	}
	p.refuse(name, "unknown name "+name.Value, hint)
}

// checkPackageOperand rejects the comparison of a package with text.
func (p *patcher) checkPackageOperand(n *ast.BinaryNode) {
	for _, sides := range [][2]ast.Node{{n.Left, n.Right}, {n.Right, n.Left}} {
		if _, isText := sides[1].(*ast.StringNode); isText && isCallOf(sides[0], namePackage) {
			p.refuse(sides[1], sides[0].String()+" is never text", "compare its version: older("+sides[0].String()+`.version, "1.2")`)
		}
	}
}

// versionOfPackage returns package(…) for the argument package(…).version, nil for other arguments.
func versionOfPackage(argument ast.Node) ast.Node {
	if !isCallOf(argument, nameGet) {
		return nil
	}
	get, _ := argument.(*ast.CallNode)
	if property, ok := get.Arguments[1].(*ast.StringNode); !ok || property.Value != "version" || !isCallOf(get.Arguments[0], namePackage) {
		return nil
	}

	return get.Arguments[0]
}

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

// resultEnv is the environment of an expression over results.
type resultEnv struct {
	Result
	Age    func(time.Time) any `expr:"age"`
	Step   func(any) bool      `expr:"__step"`
	Charge func(any, bool) any `expr:"__charge"`
}

// ResultNames returns the names in expressions over results, in the order of the documentation.
func ResultNames() []string { return namesIn(Result{}) }

// CompileResults compiles an expression over results, see Compile.
func CompileResults(text string) (Query[Result], error) {
	e, err := compile(text, vocabulary{what: "query", env: resultEnv{}, values: resultValues, words: map[Space]words{
		SpaceOutcome: {"outcome", texts(outcomes[:])},
		SpaceCause:   {"cause", model.ReportCauses()},
	}})

	return Query[Result]{e, func(b *bounds) (any, *Result) {
		env := &resultEnv{Age: b.age, Step: b.step, Charge: b.charge}
		return env, &env.Result
	}}, err
}

// NodeNames returns the names in expressions over nodes, in the order of the documentation.
func NodeNames() []string { return namesIn(env{}) }
