package arch

import "go/ast"

func checkSleep(f *File) []Breach {
	var out []Breach
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && f.Test && f.selects(e, "time", "Sleep") {
			out = append(out, f.breach(n.Pos(), "no time.Sleep in a test: await the condition"))
		}
		return true
	})

	return out
}

// checkSkip looks for skipping in tests and in what helps them.
func checkSkip(f *File) []Breach {
	if !f.Test && f.imports()["testing"] == "" {
		return nil
	}
	var out []Breach
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if ok && (s.Sel.Name == "Skip" || s.Sel.Name == "Skipf" || s.Sel.Name == "SkipNow") {
			out = append(out, f.breach(call.Pos(), "no skipped tests: what is missing is a failure"))
		}
		return true
	})

	return out
}
