package scaffold_test

import (
	"fmt"
	"testing"
)

// Directories that templates have written into once are there at the next look:
// nothing is rendered again for each of them.
func TestDirectoriesAreKnown(t *testing.T) {
	for engine, text := range map[string]string{
		"jet": `[[ range i := ints(0, 20) ]][[ write("d" + i + "/e/f", "x") ]][[ end ]][[ count() ]]`,
		"go":  `{{ range until 20 }}{{ write (printf "d%d/e/f" .) "x" }}{{ end }}{{ count }}`,
	} {
		s := newSubject(t, put("src/a", "", "src/b", `[[ "" ]]{{ "" }}`, "src/0", ""), "engine", engine)
		put("src/0", map[string]string{"jet": "[[ count() ]]", "go": "{{ count }}"}[engine], "src/b", text)(t, s.dir)
		counted := 0
		s.env.Scope.Origin = asked{"count": func() string { counted++; return "" }}
		check(t, s.apply())
		// Two templates ask.
		if counted = 0; len(s.status().Due) != 0 || counted != 2 {
			t.Errorf("%s: asked %d times", engine, counted)
		}
		// What was a directory can be a file.
		put("src/b", map[string]string{"jet": `[[ write("d0", "x") ]]`, "go": `{{ write "d0" "x" }}`}[engine])(t, s.dir)
		if state := s.status(); fmt.Sprint(state.Obstacle) != s.dir+"/out/d0: path exists as a directory, not as a regular file" {
			t.Errorf("%s: %v", engine, state.Obstacle)
		}
	}
}
