package arch

import (
	"go/ast"
	"go/token"
)

// leastDocumented is the part of all exported names that must be documented, in percent.
const leastDocumented = 95

// Documentation counts the exported names of a tree, tests and programs left
// out, and lists those without a doc comment. A group of constants or variables
// is documented by the group's comment; a package counts as a name.
func Documentation(tree Tree) (names int, missing []Breach) {
	packages := map[string]*File{}
	documented := map[string]bool{}
	for _, f := range tree {
		if f.Test {
			continue
		}
		if packages[f.Folder] == nil {
			packages[f.Folder] = f
			names++
		}
		documented[f.Folder] = documented[f.Folder] || f.syntax.Doc != nil
		c := docCount{file: f}
		for _, d := range f.syntax.Decls {
			c.declaration(d)
		}
		names += c.names
		missing = append(missing, c.missing...)
	}
	for _, f := range tree {
		if packages[f.Folder] == f && !documented[f.Folder] {
			missing = append(missing, f.breach(f.syntax.Package, "package %s has no doc comment", f.syntax.Name.Name))
		}
	}

	return names, missing
}

func checkDocs(tree Tree) []Breach {
	names, missing := Documentation(tree)
	if 100*(names-len(missing)) >= leastDocumented*names {
		return nil
	}

	return missing
}

type docCount struct {
	file    *File
	names   int
	missing []Breach
}

func (c *docCount) count(name *ast.Ident, docs ...*ast.CommentGroup) {
	if !name.IsExported() {
		return
	}
	c.names++
	for _, d := range docs {
		if d != nil {
			return
		}
	}
	c.missing = append(c.missing, c.file.breach(name.Pos(), "%s has no doc comment", name.Name))
}

func (c *docCount) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || receiverExported(d.Recv) {
			c.count(d.Name, d.Doc)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				// A comment above "type (" does not document the single types.
				group := d.Doc
				if d.Lparen != token.NoPos {
					group = nil
				}
				c.count(s.Name, group, s.Doc)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					c.count(name, d.Doc, s.Doc, s.Comment)
				}
			}
		}
	}
}

func receiverExported(recv *ast.FieldList) bool {
	t := recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
