package kvstore_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterfleet/muster/kvstore"
)

// Every kind of report, every event of a node, every status of a health check and
// every outcome has a subject, or the stream would refuse reports that nodes make.
func TestEveryOutcomeHasASubject(t *testing.T) {
	t.Parallel()
	n, err := kvstore.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	all := n.ReportSubjects("web01")
	if len(all) != len(slices.Compact(slices.Sorted(slices.Values(all)))) {
		t.Errorf("a subject is there twice: %v", all)
	}
	constants := map[string][]string{}
	files, err := filepath.Glob("../model/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		collect(t, file, constants)
	}
	ends := func(suffix string) bool {
		return slices.ContainsFunc(all, func(s string) bool {
			return strings.HasPrefix(s, "muster.report.web01.") && strings.HasSuffix(s, suffix)
		})
	}
	for typ, kind := range map[string]string{"NodeEvent": ".node.", "HealthStatus": ".health.", "Outcome": "."} {
		if len(constants[typ]) < 4 {
			t.Errorf("%s: only %v", typ, constants[typ])
		}
		for _, value := range constants[typ] {
			if !ends(kind + value) {
				t.Errorf("no subject for %s %s", typ, value)
			}
		}
	}
	for _, kind := range constants["kind"] {
		if !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "."+kind+".") }) {
			t.Errorf("no subject for kind %s", kind)
		}
	}
	if len(constants["kind"]) != 5 {
		t.Errorf("kinds: %v", constants["kind"])
	}
}

// collect adds the constants of a file by type; kinds have no type.
func collect(t *testing.T, file string, constants map[string][]string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range parsed.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok || len(values.Values) != 1 {
				continue
			}
			literal, ok := values.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				continue
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			name := ""
			if typ, ok := values.Type.(*ast.Ident); ok {
				name = typ.Name
			} else if strings.HasPrefix(values.Names[0].Name, "Kind") {
				name = "kind"
			}
			constants[name] = append(constants[name], value)
		}
	}
}
