package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// room is a folder with the packages of this module that its packages may import: a name
// stands for that folder and all folders below it. Packages of one room may import each other.
type room struct {
	folder string
	may    []string
	// tests lists what the test files may import besides.
	tests []string
}

// contract is what a resource type, the engine and manifests may import.
var contract = []string{"model", "resources/document", "resources/health", "resources/host", "resources/resource", "resources/template"}

// rooms lists the import rules. The deepest folder that contains a file decides.
var rooms = []room{
	{folder: "model"},
	{folder: "schemas", may: []string{"model", "resources"}},
	{folder: "kvstore", may: []string{"model", "resources/document"}, tests: []string{"resources"}},
	{folder: "agent", may: []string{"model", "resources", "schemas"}, tests: []string{"kvstore"}},
	{folder: "fleet", may: []string{"model", "resources", "schemas"}, tests: []string{"kvstore"}},
	{folder: "cmd", may: []string{"model", "resources", "schemas", "kvstore", "agent", "fleet"}},
	{folder: "cmd/muster/print", may: []string{"model", "resources/document"}},
	{folder: "docs", may: []string{"model", "resources", "schemas", "fleet"}},
	{folder: "examples", may: []string{"model", "resources", "schemas"}},
	{folder: "testing", may: []string{"model", "resources", "schemas", "kvstore", "agent", "fleet", "cmd", "docs"}},

	{folder: "resources", may: []string{"model"}},
	{folder: "resources/document", may: []string{"model"}},
	{folder: "resources/host", may: []string{"model", "resources/document"}},
	{folder: "resources/template", may: []string{"model", "resources/document"}},
	{folder: "resources/health", may: []string{"model", "resources/document", "resources/host"}, tests: []string{"resources/engine"}},
	{folder: "resources/resource", may: []string{"model", "resources/document", "resources/health", "resources/host"}},
	{folder: "resources/manifest", may: contract, tests: []string{"resources"}},
	{folder: "resources/engine", may: contract},
}

// typeOf returns the folder of the resource type that contains a folder: each folder directly
// below resources that has no rule is a type. It is empty for other folders.
func typeOf(folder string) string {
	name, below := strings.CutPrefix(folder, "resources/")
	name, _, _ = strings.Cut(name, "/")
	root := "resources/" + name
	if !below || slices.ContainsFunc(rooms, func(r room) bool { return r.folder == root }) {
		return ""
	}

	return root
}

// roomOf returns the rule for a folder.
func roomOf(folder string) (room, bool) {
	if root := typeOf(folder); root != "" {
		return room{folder: root, may: contract}, true
	}
	var best room
	for _, r := range rooms {
		if within(folder, r.folder) && len(r.folder) > len(best.folder) {
			best = r
		}
	}

	return best, best.folder != ""
}

func within(folder, root string) bool { return folder == root || strings.HasPrefix(folder, root+"/") }

// allows reports whether a file of the room may import a package of the module.
func (r room) allows(imported string, test bool) bool {
	in := func(folder string) bool { return within(imported, folder) }
	switch {
	case r.folder == "resources":
		// The list of the types.
		return test && (in("resources") || in("testing")) || typeOf(imported) != "" || slices.ContainsFunc(contract, in)
	case in(r.folder) || slices.ContainsFunc(r.may, in):
		return true
	default:
		return test && (in("testing") || slices.ContainsFunc(r.tests, in))
	}
}

func checkRooms(f *File) []Breach {
	r, ok := roomOf(f.Folder)
	if !ok {
		return []Breach{f.breach(f.syntax.Package, "no import rule covers %s", f.Folder)}
	}
	var out []Breach
	for _, spec := range f.syntax.Imports {
		path := importPath(spec)
		imported, ours := strings.CutPrefix(path, Module)
		imported = strings.TrimPrefix(imported, "/")
		if ours && !r.allows(imported, f.Test) {
			out = append(out, f.breach(spec.Pos(), "%s must not import %s", f.Folder, imported))
		}
	}

	return out
}

// checkNATS leaves NATS to kvstore, to the command line, which embeds a server
// for the demo and makes the connection, and to tests.
func checkNATS(f *File) []Breach {
	if within(f.Folder, "kvstore") || within(f.Folder, "testing") || within(f.Folder, "cmd/muster") {
		return nil
	}
	if f.Test && (within(f.Folder, "agent") || within(f.Folder, "fleet")) {
		return nil
	}
	// The kind of a key is no connection.
	signs := within(f.Folder, "model/signed")

	return f.mustNotImport("only kvstore does", func(p string) bool {
		return strings.HasPrefix(p, "github.com/nats-io/") && (!signs || p != "github.com/nats-io/nkeys")
	})
}

func (f *File) mustNotImport(because string, what func(path string) bool) []Breach {
	var out []Breach
	for _, spec := range f.syntax.Imports {
		if p := importPath(spec); what(p) {
			out = append(out, f.breach(spec.Pos(), "%s must not import %s, %s", f.Folder, p, because))
		}
	}

	return out
}

// checkGoss keeps goss out of everything but the program that is started to
// evaluate its rules.
func checkGoss(f *File) []Breach {
	const room = "resources/health/goss"
	if within(f.Folder, room) {
		return nil
	}

	return f.mustNotImport("muster starts itself to evaluate goss", func(p string) bool {
		return strings.HasPrefix(p, "github.com/goss-org/") || p == Module+"/"+room && !within(f.Folder, "cmd")
	})
}

// checkProcesses permits only the command packages of host to start processes: only they kill whole process
// groups and keep secrets out of environments.
func checkProcesses(f *File) []Breach {
	if within(f.Folder, "resources/host/command") || within(f.Folder, "testing") {
		return nil
	}
	out := f.mustNotImport("resources/host/command runs commands", func(p string) bool { return p == "os/exec" })
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if ok && (f.selects(e, "os", "StartProcess") || f.selects(e, "syscall", "StartProcess", "ForkExec", "Exec") || f.selects(e, "golang.org/x/sys/unix", "Exec")) {
			out = append(out, f.breach(n.Pos(), "%s must not start processes, resources/host/command does", f.Folder))
		}
		return true
	})

	return out
}

// checkScaffold allows only the scaffold type to import the library choria-io/scaffold,
// because the library renders without limits.
func checkScaffold(f *File) []Breach {
	if within(f.Folder, "resources/scaffold") {
		return nil
	}

	return f.mustNotImport("a child process renders scaffolds", func(p string) bool {
		return p == "github.com/choria-io/scaffold" || strings.HasPrefix(p, "github.com/choria-io/scaffold/")
	})
}

// checkYAML keeps the parser of YAML in one room: it panics on input that it did not
// foresee, and ends lines at other characters than documents do.
func checkYAML(f *File) []Breach {
	const parser = "gopkg.in/yaml.v3"
	uses := slices.ContainsFunc(f.syntax.Imports, func(spec *ast.ImportSpec) bool { return importPath(spec) == parser })
	if !uses || f.Test || f.Folder == "resources/document" || within(f.Folder, "testing") {
		return nil
	}
	var out []Breach
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if ok && (f.selects(s, parser, "Unmarshal", "NewDecoder") || s.Sel.Name == "Decode") {
			out = append(out, f.breach(n.Pos(), "%s must not parse YAML, resources/document does", f.Folder))
		}
		return true
	})

	return out
}
