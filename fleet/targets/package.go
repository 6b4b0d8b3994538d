package targets

import (
	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/model"
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

// PackageNames returns the names in expressions over packages, in the order of the documentation.
func PackageNames() []string { return []string{"node", "name", "version", "arch", "manager"} }

// Packages is a compiled expression over packages.
type Packages struct{ *Expression }

// CompilePackages compiles an expression over packages, see Compile. The functions over versions use the
// scheme of the package's manager unless the expression gives a scheme.
func CompilePackages(text string) (Packages, error) {
	e, err := compile(text, vocabulary{
		what: "query over packages", env: packageEnv{}, names: PackageNames(), scheme: "manager",
		mentions: InPackages,
		wordsOf:  func(ast.Node) (string, []string) { return "", nil },
	})

	return Packages{e}, err
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

// PackageEvaluator evaluates one expression for many packages. One goroutine uses it.
type PackageEvaluator struct {
	bounds
	env packageEnv
}

// Evaluator returns an evaluator of the expression. Once done is closed, Match returns ErrEnded.
func (e Packages) Evaluator(done <-chan struct{}) *PackageEvaluator {
	out := &PackageEvaluator{bounds: newBounds(e.program)}
	out.done = done
	out.env.Step, out.env.Charge = out.step, out.charge

	return out
}

// Match reports whether a package of a node matches. The error is about this package, or wraps ErrEnded.
func (e *PackageEvaluator) Match(node string, p model.Package) (bool, error) {
	e.env.Package = Package{node, p.Name, p.Version, p.Arch, p.Manager, ""}

	return e.run(&e.env)
}
