package arch

import "go/ast"

// The budgets of code that is not a test.
const (
	maxFileLines     = 500
	maxFunctionLines = 80
)

func checkFileSize(f *File) []Breach {
	if f.Test || f.Lines <= maxFileLines {
		return nil
	}

	return []Breach{f.breach(f.syntax.Package, "%d lines, at most %d", f.Lines, maxFileLines)}
}

func checkFunctionSize(f *File) []Breach {
	if f.Test {
		return nil
	}
	var out []Breach
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		name := "a function literal"
		switch n := n.(type) {
		case *ast.FuncDecl:
			name = n.Name.Name
		case *ast.FuncLit:
		default:
			return true
		}
		lines := f.fset.Position(n.End()).Line - f.fset.Position(n.Pos()).Line + 1
		if lines > maxFunctionLines {
			out = append(out, f.breach(n.Pos(), "%s has %d lines, at most %d", name, lines, maxFunctionLines))
		}
		return true
	})

	return out
}
