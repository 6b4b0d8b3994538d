package scaffold_test

import (
	"testing"

	"github.com/musterfleet/muster/resources/scaffold"
)

// TestNull checks that printing a null value, or a value with null in it, is an error with the
// position in the template. In Go templates a missing key is one too.
func TestNull(t *testing.T) {
	const jetHint = " (give it a value, or write [[ isset(Data.null) ? Data.null : \"…\" ]])"
	goHint := func(source string) string {
		return " (give it a value, or write {{ " + source + " | default \"…\" }})"
	}
	words := map[string]any{"lookup": func(string) string { return "<no value>" }}
	data := map[string]any{"v": "a <no value> b", "null": nil, "m": map[string]any{"b": 1, "a": nil}, "l": []any{1, []any{nil}}}
	for name, tc := range map[string]struct {
		engine, text, part string
		want, wrong        string
	}{
		"go, in the template":      {"go", "\n{{ .Data.no }}", "", "", "f:2: `.Data.no` is missing or null" + goHint(".Data.no")},
		"go, trimmed":              {"go", "a\n{{- .Data.null -}}\n", "", "", "f:2: `.Data.null` is missing or null" + goHint(".Data.null")},
		"go, a quoted delimiter":   {"go", "{{ \"}}\" }}{{ `}}` }}{{ .Data.v -}}\n", "", "}}}}a <no value> b", ""},
		"go, a default":            {"go", "{{ .Data.null | default \"}}\" }}{{ $x := .Data.null }}{{ if $x }}{{ end }}", "", "}}", ""},
		"go, in a part":            {"go", "{{ render \"_partials/p\" . }}", "\n{{ .Data.no }}", "", "f:1: <render \"_partials/p\" .>: error calling render: _partials/p:2: `.Data.no` is missing or null" + goHint(".Data.no")},
		"go, in a part, written":   {"go", "{{ write \"w\" (render \"_partials/p\" .) }}", "\n{{ .Data.no }}", "", "f:1: <render \"_partials/p\" .>: error calling render: _partials/p:2: `.Data.no` is missing or null" + goHint(".Data.no")},
		"go, a part has the words": {"go", "{{ render \"_partials/p\" . }}", "<no value>", "<no value>", ""},
		"go, given by a function":  {"go", "{{ lookup \"v\" }}", "", "<no value>", ""},
		"go, in a definition":      {"go", "{{ define \"x\" }}\n{{ . }}{{ end }}{{ template \"x\" .Data.null }}", "", "", "f:2: `.` is missing or null" + goHint(".")},
		"go, in a mapping":         {"go", "{{ .Data.m }}", "", "", "f:1: `.Data.m` is null at `a` (give it a value, or write {{ .Data.m | toJson }})"},
		"go, in a list":            {"go", "{{ .Data.l }}", "", "", "f:1: `.Data.l` is null at `[1][0]` (give it a value, or write {{ .Data.l | toJson }})"},
		"go, as JSON":              {"go", "{{ .Data.m | toJson }}", "", "{\"a\":null,\"b\":1}", ""},
		"jet, in the template":     {"jet", "\nproxy=[[ Data.null ]]", "", "", "f:2: `Data.null` is null" + jetHint},
		"jet, trimmed":             {"jet", "\n[[- Data.null -]]", "", "", "f:2: `Data.null` is null" + jetHint},
		"jet, piped":               {"jet", "[[ Data.null | raw ]]", "", "", "f:1: `Data.null` is null" + jetHint},
		"jet, in a block":          {"jet", "[[ if true ]]\n[[ Data.null ]][[ end ]]", "", "", "f:2: `Data.null` is null" + jetHint},
		"jet, in a part":           {"jet", "[[ render(\"_partials/p\", .) ]]", "\n[[ Data.null ]]", "", "f:1: render: _partials/p:2: `Data.null` is null" + jetHint},
		"jet, a default":           {"jet", "[[ isset(Data.null) ? Data.null : \"d\" ]][[ Data.no ]][[ (1 + 2) * 3 ]][[ !true ]][[ x := 1; x ]]", "", "d9false1", ""},
		"jet, in a mapping":        {"jet", "[[ Data.m ]]", "", "", "f:1: `Data.m` is null at `a` (give it a value, or write [[ writeJson(Data.m) ]])"},
		"jet, in a list":           {"jet", "[[ Data.l ]]", "", "", "f:1: `Data.l` is null at `[1][0]` (give it a value, or write [[ writeJson(Data.l) ]])"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, put("src/f", tc.text, "src/_partials/p", tc.part), "engine", tc.engine)
			s.spec.Data = data
			s.env.Scope.Origin = asked(words)
			_, err := s.typ.Status(t.Context(), s.env, scaffold.Choria{}, s.spec)
			if err == nil && tc.wrong == "" {
				check(t, s.apply())
				has("out", "f", tc.want)(t, s.dir)
				return
			}
			if err == nil || err.Error() != tc.wrong {
				t.Errorf("got  %v\nwant %s", err, tc.wrong)
			}
		})
	}
}
