package scaffold_test

import (
	"fmt"
	"testing"
)

// Templates write into missing and existing directories, and render only once.
func TestDirectoriesAreKnown(t *testing.T) {
	for engine, text := range map[string]string{
		"jet": `[[ count() ]][[ range i := ints(0, 20) ]][[ write("d" + i + "/e/f", "x") ]][[ end ]]`,
		"go":  `{{ count }}{{ range until 20 }}{{ write (printf "d%d/e/f" .) "x" }}{{ end }}`,
	} {
		s := newSubject(t, put("src/a", "", "src/b", `[[ "" ]]{{ "" }}`, "src/0", ""), "engine", engine)
		put("src/0", map[string]string{"jet": "[[ count() ]]", "go": "{{ count }}"}[engine], "src/b", text)(t, s.dir)
		counted := 0
		s.env.Scope.Origin = asked{"count": func() string { counted++; return "" }}
		// The calls of two templates are equal.
		if len(s.status().Due) != 23 || counted != 1 {
			t.Errorf("%s: asked %d times for missing directories", engine, counted)
		}
		check(t, s.apply())
		if counted = 0; len(s.status().Due) != 0 || counted != 1 {
			t.Errorf("%s: asked %d times", engine, counted)
		}
		// A file may replace a directory of the templates.
		put("src/b", map[string]string{"jet": `[[ write("d0", "x") ]]`, "go": `{{ write "d0" "x" }}`}[engine])(t, s.dir)
		if state := s.status(); fmt.Sprint(state.Obstacle) != s.dir+"/out/d0: path exists as a directory, not as a regular file" {
			t.Errorf("%s: %v", engine, state.Obstacle)
		}
	}
}
