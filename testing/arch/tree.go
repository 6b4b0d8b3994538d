package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the path of the checked module.
const Module = "github.com/musterfleet/muster"

// File is one parsed Go file.
type File struct {
	// Path is the path of the file and Folder the path of its package, both relative to the module's root,
	// with slashes. The folder of the root is ".".
	Path, Folder string
	// Test means that the file is a _test.go.
	Test  bool
	Lines int

	syntax *ast.File
	fset   *token.FileSet
}

// Tree is every Go file of a module, in the order of the paths.
type Tree []*File

// Breach is one place that breaks a rule.
type Breach struct {
	// Where is file:line.
	Where string
	What  string
}

// String returns "file:line: what".
func (b Breach) String() string { return b.Where + ": " + b.What }

// Load parses every Go file below root, except in vendored folders and folders that the go command ignores
// (testdata, names that begin with a dot or an underscore).
func Load(root string) (Tree, error) {
	sources := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && leftOut(d.Name()):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		sources[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		return nil, err
	}

	return Parse(sources)
}

func leftOut(folder string) bool {
	return folder == "testdata" || folder == "vendor" || folder == "node_modules" || strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_")
}

// Parse makes a tree of sources by their path below the module's root.
func Parse(sources map[string]string) (Tree, error) {
	var tree Tree
	fset := token.NewFileSet()
	for name, text := range sources {
		syntax, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		tree = append(tree, &File{
			Path: name, Folder: path.Dir(name), Test: strings.HasSuffix(name, "_test.go"),
			Lines: strings.Count(text, "\n"), syntax: syntax, fset: fset,
		})
	}
	slices.SortFunc(tree, func(a, b *File) int { return strings.Compare(a.Path, b.Path) })

	return tree, nil
}

// breach makes a breach of a place in the file.
func (f *File) breach(at token.Pos, format string, args ...any) Breach {
	return Breach{Where: f.Path + ":" + strconv.Itoa(f.fset.Position(at).Line), What: fmt.Sprintf(format, args...)}
}

// imports returns the imported paths by the name they have in the file.
func (f *File) imports() map[string]string {
	out := map[string]string{}
	for _, spec := range f.syntax.Imports {
		imported := importPath(spec)
		name, _, _ := strings.Cut(path.Base(imported), ".v") // gopkg.in/yaml.v3 is yaml
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out[name] = imported
	}

	return out
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}

	return p
}

// selects means that an expression is pkg.name of an imported package.
func (f *File) selects(e ast.Expr, imported string, names ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || !slices.Contains(names, s.Sel.Name) {
		return false
	}
	x, ok := s.X.(*ast.Ident)

	return ok && x.Obj == nil && f.imports()[x.Name] == imported
}
