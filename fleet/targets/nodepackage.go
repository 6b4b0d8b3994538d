package targets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/pkg/version"
)

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
	values := []string{p.Node, p.Name, p.Version, p.Arch, p.Manager}
	if at := slices.IndexFunc(PackageNames(), func(n string) bool { return n == name }); at >= 0 {
		return values[at], nil
	}

	return nil, nil
}

// packageCall returns a node of the tree as a call of package, nil for any other node.
func packageCall(n ast.Node) *ast.CallNode {
	if c, ok := n.(*ast.CallNode); ok {
		if callee, ok := c.Callee.(*ast.IdentifierNode); ok && callee.Value == namePackage {
			return c
		}
	}

	return nil
}

// checkPackageName rejects a package name that is not literal text: Installed has to know all names.
func (p *patcher) checkPackageName(n *ast.CallNode) {
	if packageCall(n) == nil || len(n.Arguments) != 1 {
		return
	}
	if _, ok := n.Arguments[0].(*ast.StringNode); !ok {
		p.refuse(n.Arguments[0], "the name of a package is not literal text", `write it in quotes, such as package("openssl")`)
	}
}

// checkPackageMember rejects an unknown property of a package.
func (p *patcher) checkPackageMember(n *ast.MemberNode) {
	name, ok := n.Property.(*ast.StringNode)
	if !ok || packageCall(n.Node) == nil || slices.Contains(PackageNames(), name.Value) {
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
		if _, isText := sides[1].(*ast.StringNode); isText && packageCall(sides[0]) != nil {
			p.refuse(sides[1], sides[0].String()+" is never text", "compare its version: older("+sides[0].String()+`.version, "1.2")`)
		}
	}
}

// versionOfPackage returns package(…) for the argument package(…).version, nil for other arguments.
func versionOfPackage(argument ast.Node) ast.Node {
	get, ok := argument.(*ast.CallNode)
	if !ok || len(get.Arguments) != 2 {
		return nil
	}
	callee, isName := get.Callee.(*ast.IdentifierNode)
	property, isText := get.Arguments[1].(*ast.StringNode)
	if !isName || !isText || callee.Value != nameGet || property.Value != "version" || packageCall(get.Arguments[0]) == nil {
		return nil
	}

	return get.Arguments[0]
}
