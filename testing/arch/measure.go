package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// product reports whether a file is hand-written code of the product: no test, harness, generator or
// generated file.
func (f *File) product() bool {
	return !f.Test && !ast.IsGenerated(f.syntax) && !within(f.Folder, "testing") && !strings.Contains("/"+f.Folder+"/", "/internal/")
}

// house is the measures of a tree.
type house struct {
	lines            int
	packages         map[string]int
	files, functions []int
	methods, fields  map[string]int
}

// Print writes the sizes of a tree. No rule enforces them, because slicing would satisfy it.
func Print(w io.Writer, tree Tree) {
	h := house{packages: map[string]int{}, methods: map[string]int{}, fields: map[string]int{}}
	for _, f := range tree {
		if f.product() {
			h.measure(f)
		}
	}
	names, missing := Documentation(tree)
	fmt.Fprintf(w, "product code        %d lines in %d files, %d packages\n", h.lines, len(h.files), len(h.packages))
	fmt.Fprintf(w, "lines a file        %s\n", spread(h.files))
	fmt.Fprintf(w, "lines a function    %s\n", spread(h.functions))
	fmt.Fprintf(w, "documented          %d of %d exported names\n", names-len(missing), names)
	most(w, "packages over 1,500 lines", h.packages, 1500)
	most(w, "types over 25 methods", h.methods, 25)
	most(w, "structs over 12 fields", h.fields, 12)
}

func (h *house) measure(f *File) {
	h.lines += f.Lines
	h.files = append(h.files, f.Lines)
	h.packages[f.Folder] += f.Lines
	for _, d := range f.syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			h.functions = append(h.functions, f.fset.Position(d.End()).Line-f.fset.Position(d.Pos()).Line+1)
			if d.Recv != nil {
				h.methods[f.typeName(d.Recv.List[0].Type)]++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					h.fields[f.typeName(t.Name)] = fieldsOf(t)
				}
			}
		}
	}
}

// typeName returns folder.Type of a type expression of the file.
func (f *File) typeName(e ast.Expr) string {
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return path.Join(f.Folder, t.Name)
		default:
			return f.Folder
		}
	}
}

func fieldsOf(t *ast.TypeSpec) int {
	s, ok := t.Type.(*ast.StructType)
	if !ok {
		return 0
	}

	return s.Fields.NumFields()
}

// spread writes the median, the ninth tenth and the largest of sizes.
func spread(sizes []int) string {
	if len(sizes) == 0 {
		return "none"
	}
	slices.Sort(sizes)

	return fmt.Sprintf("median %d, p90 %d, largest %d", sizes[len(sizes)/2], sizes[len(sizes)*9/10], sizes[len(sizes)-1])
}

// most writes the entries above a limit, the largest first.
func most(w io.Writer, what string, sizes map[string]int, budget int) {
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(sizes[b]-sizes[a], strings.Compare(a, b)) })
	fmt.Fprintf(w, "%s:\n", what)
	for _, name := range names {
		if sizes[name] > budget {
			fmt.Fprintf(w, "  %5d  %s\n", sizes[name], name)
		}
	}
}
