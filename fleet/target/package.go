package target

import (
	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/model"
)

// Package is an installed package of a node, as an expression sees it.
type Package struct {
	Node    string `expr:"node"`
	Name    string `expr:"name"`
	Version string `expr:"version"`
	Arch    string `expr:"arch"`
	Manager string `expr:"manager"`
	// incomplete is the reason why the inventory lacks versions.
	incomplete string
}

// packageEnv is what a program over packages reads.
type packageEnv struct {
	Package
	Step func(any) bool `expr:"__step"`
}

// PackageNames are the names of expressions over packages, in the order of the documentation.
func PackageNames() []string { return []string{"node", "name", "version", "arch", "manager"} }

// whatPackage is what an expression over packages is called.
const whatPackage = "query over packages"

// Packages is an expression over packages that compiled.
type Packages struct{ *Expression }

// CompilePackages compiles an expression over packages, as Compile does over nodes. The version
// of a package compares by the scheme of its manager unless the expression gives a scheme.
func CompilePackages(text string) (Packages, error) {
	e, err := compile(text, vocabulary{
		what: whatPackage, env: packageEnv{}, names: PackageNames(), scheme: "manager",
		wordsOf: func(ast.Node) (string, []string) { return "", nil },
	})

	return Packages{e}, err
}

// addScheme adds the scheme of the manager to a comparison with the version of a package.
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

// Evaluator returns what evaluates the expression until done is closed: Match returns ErrEnded
// then.
func (e Packages) Evaluator(done <-chan struct{}) *PackageEvaluator {
	out := &PackageEvaluator{bounds: newBounds(e.program)}
	out.done = done
	out.env.Step = out.step

	return out
}

// Match reports whether a package of a node matches. Its error is about this package.
func (e *PackageEvaluator) Match(node string, p model.Package) (bool, error) {
	e.env.Package = Package{node, p.Name, p.Version, p.Arch, p.Manager, ""}

	return e.run(&e.env)
}
