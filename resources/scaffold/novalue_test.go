package scaffold_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/scaffold/choria"
)

// Missing keys of Go templates are found in all that these give, and the same
// words of anybody else are no missing key.
func TestMissingKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		text, part, value string
		wrong             string
	}{
		"in the template":      {"{{ .Data.no }}", "", "", "f: line 1 of the result has <no value>"},
		"in a part":            {"{{ render \"_partials/p\" . }}", "\n{{ .Data.no }}", "", "f: line 2 of the result has <no value>"},
		"in a part, written":   {"{{ write \"w\" (render \"_partials/p\" .) }}", "\n{{ .Data.no }}", "", "w: line 2 of the result has <no value>"},
		"a part has the words": {"{{ render \"_partials/p\" . }}", "<no value>", "", ""},
		"data have the words":  {"{{ .Data.v }}", "", "a <no value> b", ""},
		"given by a function":  {"{{ lookup \"v\" }}", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, put("src/f", tc.text, "src/_partials/p", tc.part), "engine", "go", "data", map[string]any{"v": tc.value})
			s.env.Scope.Origin = asked{"lookup": func(string) string { return "<no value>" }}
			_, err := s.typ.Status(t.Context(), s.env, choria.Provider{}, s.spec)
			if (err != nil) != (tc.wrong != "") || err != nil && !strings.HasPrefix(err.Error(), tc.wrong) {
				t.Errorf("got  %v\nwant %s", err, tc.wrong)
			}
		})
	}
}
