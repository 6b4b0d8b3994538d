package scaffold_test

import "testing"

// What a template does to the data, no other one sees.
func TestTemplatesHaveTheirOwnData(t *testing.T) {
	for engine, tc := range map[string]struct{ first, second, want string }{
		"go":  {`{{ $_ := set .Data "name" "x" }}{{ $_ := set .Data.m "k" "x" }}{{ $_ := set . "more" 1 }}{{ $_ := set .Environ "STAGE" "x" }}{{ .Data.name }}`, `{{ .Data.name }} {{ .Data.m.k }} {{ hasKey . "more" }} {{ .Environ.STAGE }} {{ env "STAGE" }}`, "app v false prod prod"},
		"jet": {`[[ Data.name = "x" ]][[ Data.m.k = "x" ]][[ Environ = "x" ]][[ more := 1 ]][[ Data.name ]]`, `[[ Data.name ]] [[ Data.m.k ]] [[ isset(more) ]] [[ Environ.STAGE ]] prod`, "app v false prod prod"},
	} {
		s := newSubject(t, put("src/a", tc.first, "src/b", tc.second), "engine", engine, "data", map[string]any{"name": "app", "m": map[string]any{"k": "v"}})
		s.env.Scope.Origin = asked{}
		check(t, s.apply())
		has("out", "a", "x", "b", tc.want)(t, s.dir)
	}
}
