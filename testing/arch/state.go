package arch

import (
	"go/ast"
	"go/token"
	"slices"
)

func checkInit(f *File) []Breach {
	var out []Breach
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			out = append(out, f.breach(fn.Pos(), "no func init: list it where it is used"))
		}
	}

	return out
}

// checkVariables finds package variables that are anything but constants: set,
// changed within, pointed at, or made to be changed, such as a sync.Mutex.
func checkVariables(tree Tree) []Breach {
	type unit struct{ folder, name string }
	declared := map[unit]map[string]bool{}
	specs := map[any]bool{}
	var out []Breach
	for _, f := range tree {
		u := unit{f.Folder, f.syntax.Name.Name}
		if declared[u] == nil {
			declared[u] = map[string]bool{}
		}
		for _, spec := range variables(f) {
			specs[spec] = true
			for _, name := range spec.Names {
				declared[u][name.Name] = name.Name != "_"
			}
			if f.holdsState(spec) {
				out = append(out, f.breach(spec.Pos(), "package variable %s holds state: put it into a struct", spec.Names[0].Name))
			}
		}
	}
	for _, f := range tree {
		w := writes{file: f, declared: declared[unit{f.Folder, f.syntax.Name.Name}], specs: specs, imports: f.imports()}
		ast.Inspect(f.syntax, w.visit)
		out = append(out, w.found...)
	}

	return out
}

// variables are the package variables of a file.
func variables(f *File) []*ast.ValueSpec {
	var out []*ast.ValueSpec
	for _, d := range f.syntax.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			out = append(out, s.(*ast.ValueSpec))
		}
	}

	return out
}

// holdsState means that a variable is of a type that is there to be changed.
func (f *File) holdsState(spec *ast.ValueSpec) bool {
	types := []ast.Expr{spec.Type}
	for _, v := range spec.Values {
		if u, ok := v.(*ast.UnaryExpr); ok && u.Op == token.AND {
			v = u.X
		}
		if lit, ok := v.(*ast.CompositeLit); ok {
			types = append(types, lit.Type)
		}
	}
	for _, t := range types {
		if index, ok := t.(*ast.IndexExpr); ok {
			t = index.X
		}
		if f.selects(t, "sync", "Mutex", "RWMutex", "Once", "Map", "Pool", "WaitGroup", "Cond") ||
			f.selects(t, "sync/atomic", "Bool", "Int32", "Int64", "Uint32", "Uint64", "Pointer", "Value", "Uintptr") {
			return true
		}
		if ch, ok := t.(*ast.ChanType); ok && ch != nil {
			return true
		}
	}

	return false
}

// writes finds where package variables are written.
type writes struct {
	file     *File
	declared map[string]bool
	specs    map[any]bool
	imports  map[string]string
	found    []Breach
}

func (w *writes) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			w.check("is set", n.Lhs...)
		}
	case *ast.IncDecStmt:
		w.check("is set", n.X)
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			w.check("is set", n.Key, n.Value)
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			w.check("is pointed at", n.X)
		}
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && name.Obj == nil && len(n.Args) > 0 {
			switch name.Name {
			case "delete", "clear", "copy":
				w.check("is changed", n.Args[0])
			}
		}
	}

	return true
}

func (w *writes) check(how string, targets ...ast.Expr) {
	for _, target := range targets {
		name, ok := w.variable(target)
		// fisk and the runtime have these settings nowhere else.
		if ok && !slices.Contains([]string{"fisk.EnableFileExpansion", "runtime.MemProfileRate"}, name) {
			w.found = append(w.found, w.file.breach(target.Pos(), "package variable %s %s", name, how))
		}
	}
}

// variable finds the package variable, of this package or another, that is at
// the root of an expression such as v.field[i].
func (w *writes) variable(e ast.Expr) (string, bool) {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			if p, ok := x.X.(*ast.Ident); ok && p.Obj == nil && w.imports[p.Name] != "" {
				return p.Name + "." + x.Sel.Name, true
			}
			e = x.X
		case *ast.Ident:
			if x.Obj != nil {
				return x.Name, w.specs[x.Obj.Decl]
			}
			return x.Name, w.declared[x.Name]
		default:
			return "", false
		}
	}
}
