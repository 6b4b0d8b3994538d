package scaffold_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/CloudyKit/jet/v6"
	library "github.com/choria-io/scaffold"

	"github.com/musterfleet/muster/testing/hosttest"
)

// TestAsTheLibrary holds what templates give against what the library gives
// that they were specified by.
func TestAsTheLibrary(t *testing.T) {
	partials := []string{"_partials/p", "<[[ Data.name ]]>\n", "_partials/g", "<{{ .Data.name }}>\n", "d/_partials/q", "q", "_partials/dot", "[[ .x ]]", "d/e/keep", ""}
	for name, tc := range map[string]struct {
		engine string
		files  []string
	}{
		"jet, values":         {"jet", []string{"f", "[[ Data.name ]] [[ Facts.os ]] [[ data.name ]] [[ Data.no ]]{{ x }}<&>\n\n"}},
		"jet, trimmed":        {"jet", []string{"f", "a \n [[- 1 -]] \n b[[ x := 2 ]]\n[[ x ]]\n"}},
		"jet, control":        {"jet", []string{"f", "[[ range i, v := slice(1, 2) ]][[ if i > 0 ]],[[ end ]][[ v ]][[ end ]][[ block b(n=1) ]]<[[ n ]]>[[ end ]][[ yield b(n=2) ]][[ try ]][[ Nope ]][[ catch ]]c[[ end ]]"}},
		"jet, functions":      {"jet", []string{"f", `[[ "a" | upper ]] [[ len("abc") ]] [[ isset(Data.no) ]] [[ repeat("x", 3) ]] [[ "<" | raw ]] [[ json(map("a", 1)) ]]`}},
		"jet, partials":       {"jet", []string{"d/f", `[[ render("_partials/p", .) ]][[ render("d/_partials/q", .) ]][[ render("_partials/dot", map("x", 1)) ]]`}},
		"jet, written":        {"jet", []string{"f", `a[[ write("g", "1") ]]b[[ write("d/e/../h", "2") ]][[ write("/i", "") ]][[ write("g", "3") ]]`}},
		"jet, scope":          {"jet", []string{"a", "[[ mine := 1 ]]", "b", "[[ isset(mine) ]]"}},
		"jet, comments":       {"jet", []string{"f", "a{* [[ 1 ]] *}b"}},
		"jet, numbers":        {"jet", []string{"f", "[[ 1 + 2 * 3 ]] [[ 7 / 2 ]] [[ 1.50 ]] [[ true && !false ]] [[ \"a\" + \"b\" ]] [[ Data.n ]]"}},
		"go, values":          {"go", []string{"f", "{{ .Data.name }} {{ .Facts.os }} [[ x ]]<&>{{ \"<\" }}\n{{ .Data.n }}\n"}},
		"go, missing":         {"go", []string{"f", `{{ if .Data.no }}x{{ else }}y{{ end }}{{ .Data.no | default "d" }}{{ with .Data.no }}z{{ end }}`}},
		"go, control":         {"go", []string{"f", `{{ range $i, $v := list 1 2 }}{{ $i }}{{ $v }}{{ else }}none{{ end }}{{- define "a" }}<{{ . }}>{{ end }} {{ template "a" 1 }}{{ block "b" 2 }}[{{ . }}]{{ end }}`}},
		"go, functions":       {"go", []string{"f", `{{ "a" | upper | quote }} {{ list 1 2 | join "," }} {{ dict "a" 1 | toJson }} {{ "x" | repeat 3 }} {{ indent 2 "y" }} {{ until 3 }} {{ printf "%05d" 7 }} {{ html "<" }}`}},
		"go, partials":        {"go", []string{"d/f", `{{ render "_partials/g" . }}{{ render "d/_partials/q" . }}`}},
		"go, written":         {"go", []string{"f", `a{{ write "g" "1" }}b{{ write "d/e/../h" "2" }}{{ write "g" "3" }}`}},
		"go, break, continue": {"go", []string{"f", `{{ range list 1 2 3 4 }}{{ if eq . 2 }}{{ continue }}{{ end }}{{ if eq . 4 }}{{ break }}{{ end }}{{ . }}{{ end }}`}},
	} {
		t.Run(name, func(t *testing.T) {
			more := []any{"engine", tc.engine, "data", map[string]any{"name": "app", "n": 3}}
			s := newSubject(t, func(t *testing.T, dir string) {
				for _, files := range [][]string{partials, tc.files} {
					for i := 0; i < len(files); i += 2 {
						put("src/"+files[i], files[i+1])(t, dir)
					}
				}
			}, more...)
			other := filepath.Join(t.TempDir(), "out")
			renderByLibrary(t, tc.engine, filepath.Join(s.dir, "src"), other, s.spec.Data)
			check(t, s.apply())
			for _, c := range hosttest.SnapshotDiff(timeless(t, other), timeless(t, filepath.Join(s.dir, "out"))) {
				t.Error(c)
			}
		})
	}
}

func timeless(t *testing.T, dir string) hosttest.Tree {
	t.Helper()
	tree := hosttest.Snapshot(t, dir)
	for name, item := range tree {
		item.ModTime = time.Time{}
		tree[name] = item
	}

	return tree
}

// renderByLibrary renders a source with the library alone.
func renderByLibrary(t *testing.T, engine, source, target string, data map[string]any) {
	t.Helper()
	values := map[string]any{"Data": data, "data": data, "Facts": map[string]any{"os": "debian"}}
	cfg := library.Config{SourceDirectory: source, TargetDirectory: target, CustomLeftDelimiter: "[[", CustomRightDelimiter: "]]"}
	if engine == "go" {
		cfg.CustomLeftDelimiter, cfg.CustomRightDelimiter = "", ""
		l, err := library.New(cfg, nil)
		check(t, err)
		_, err = l.Render(values)
		check(t, err)

		return
	}
	variables := jet.VarMap{}
	for name, v := range values {
		variables.Set(name, v)
	}
	l, err := library.NewJet(cfg, nil)
	check(t, err)
	_, err = l.Render(variables)
	check(t, err)
}
