package scaffold_test

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
)

// What a template reads may be what the run makes: then it is missing, and no failure of noop.
func TestTemplatesReadWhatIsMissing(t *testing.T) {
	for engine, text := range map[string]string{"go": `{{ readFile "d/../val" }}`, "jet": `[[ file("val") ]]`} {
		s := newSubject(t, put("src/f", text), "engine", engine)
		read := func(path string) (any, error) { return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist) }
		s.env.Scope.Origin = asked{"readFile": read, "file": read}
		_, err := s.typ.Status(t.Context(), s.env, scaffold.Choria{}, s.spec)
		if needs := resource.Prerequisites(err); len(needs) != 1 || needs[0] != resource.PathNeed(s.dir+"/val") {
			t.Errorf("%s: %q: %v", engine, needs, err)
		}
	}
}
