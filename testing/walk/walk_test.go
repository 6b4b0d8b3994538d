// Package walk holds the walk of docs/architecture.md, from a put in the bucket
// to its report, against what runs on a node.
package walk_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/markdown"
)

const (
	module = "github.com/musterfleet/muster/"
	// most is how many functions a reader follows at most.
	most = 40
)

// step is a row of the walk.
type step struct {
	folder, function string
	// woken marks a function that waits in a separate goroutine.
	woken bool
}

// name is the function without its type.
func (s step) name() string { return s.function[strings.LastIndex(s.function, ".")+1:] }

// The sections of docs/architecture.md with a walk.
const (
	key   = "## One key, from the bucket to the report"
	drift = "## One drift, from the event to the run"
)

var row = regexp.MustCompile("(?m)^\\| [0-9]+ \\| `([^`]+)` \\| `([^`]+)` \\| (.*) \\|$")

func steps(t *testing.T, section string) []step {
	t.Helper()
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []step
	for _, m := range row.FindAllStringSubmatch(markdown.Section(string(text), section), -1) {
		out = append(out, step{m[1], m[2], strings.HasPrefix(m[3], "**woken**")})
	}

	return out
}

// TestWalkIsWhatRuns builds an agent with coverage, and runs it from a put to
// the report.
func TestWalkIsWhatRuns(t *testing.T) {
	dir := t.TempDir()
	node, out := filepath.Join(dir, "node"), filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "go", "build", "-cover", "-covermode=atomic", "-coverpkg=../../...", "-o", node, "./node")
	command(t, node, out)
	ran := map[string]bool{}
	for line := range strings.Lines(command(t, "go", "tool", "covdata", "func", "-i="+out)) {
		words := strings.Fields(line)
		if len(words) == 3 && words[2] != "0.0%" {
			file, _, _ := strings.Cut(strings.TrimPrefix(words[0], module), ":")
			ran[path.Dir(file)+" "+strings.TrimPrefix(words[1], "*")] = true
		}
	}
	all := steps(t, key)
	if len(all) == 0 || len(all) > most {
		t.Errorf("the walk has %d functions, at most %d", len(all), most)
	}
	for _, s := range all {
		if !ran[s.folder+" "+s.function] {
			t.Errorf("%s of %s did not run between the put and the report", s.function, s.folder)
		}
	}
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}

	return string(out)
}

// TestWalksHaveNoGaps: a function above calls every function that is not woken. Only a function of its folder calls
// one that is not exported.
func TestWalksHaveNoGaps(t *testing.T) {
	for _, section := range []string{key, drift} {
		t.Run(section, func(t *testing.T) { checkGaps(t, steps(t, section)) })
	}
}

func checkGaps(t *testing.T, all []step) {
	t.Helper()
	if len(all) == 0 {
		t.Fatal("no functions")
	}
	named := map[string][]string{}
	for _, s := range all {
		folder := s.folder
		if ast.IsExported(s.name()) {
			folder = ""
		}
		if !s.woken && !slices.Contains(named[folder], s.name()) {
			t.Errorf("%s of %s is called by none above it", s.function, s.folder)
		}
		names := namesIn(t, s)
		named[""], named[s.folder] = append(named[""], names...), append(named[s.folder], names...)
	}
}

// namesIn returns the names that the body of a function uses.
func namesIn(t *testing.T, s step) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", s.folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && nameOf(fn) == s.function {
				var names []string
				ast.Inspect(fn.Body, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						names = append(names, id.Name)
					}
					return true
				})
				return names
			}
		}
	}
	t.Errorf("%s is not in %s", s.function, s.folder)

	return nil
}

func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if id, ok := receiver.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}

	return fn.Name.Name
}
