package template_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/template"
)

// setOf makes a set of the texts, with names of its own.
func setOf(engine string, texts map[string]string) *template.Set {
	s := &template.Set{Left: "[[", Right: "]]", Texts: texts, Names: template.Names{"Data": map[string]any{"name": "app"}}, Limits: template.Limits{Bytes: 1000, Steps: 10_000}}
	if engine == "go" {
		s.Go, s.Left, s.Right = true, "{{", "}}"
	}

	return s
}

// Templates of a set are bounded together, whatever they render on their way.
func TestSetIsBounded(t *testing.T) {
	long := strings.Repeat("x", 400)
	for name, tc := range map[string]struct {
		engine string
		texts  map[string]string
		want   string
	}{
		"jet, endless":           {"jet", map[string]string{"f": "[[ range ints(0, 1000000000) ]][[ end ]]"}, "f:1:32: it does too much work"},
		"jet, endless partial":   {"jet", map[string]string{"f": `[[ range ints(0, 1000000000) ]][[ render("p", .) ]][[ end ]]`, "p": ""}, "f:1:35: it does too much work"},
		"jet, too long":          {"jet", map[string]string{"f": `[[ render("p", .) ]][[ render("p", .) ]]`, "p": long}, "p:1:1: it gives more than is allowed: 1000 bytes"},
		"jet, writes too much":   {"jet", map[string]string{"f": `[[ write("a", "` + long + `") ]][[ write("b", "` + long + long + `") ]]`}, "f:1:424: it gives more than is allowed: 1000 bytes"},
		"jet, renders itself":    {"jet", map[string]string{"f": "[[ render(\"f\", .) ]]"}, "f:1:4: it recurses too deep"},
		"go, endless":            {"go", map[string]string{"f": "{{ range 1000000000 }}{{ end }}"}, "f:1:10: it does too much work"},
		"go, endless partial":    {"go", map[string]string{"f": `{{ range 1000000000 }}{{ render "p" . }}{{ end }}`, "p": ""}, "f:1:10: it does too much work"},
		"go, too long":           {"go", map[string]string{"f": `{{ render "p" . }}{{ render "p" . }}`, "p": long}, "p:1:1: it gives more than is allowed: 1000 bytes"},
		"go, renders itself":     {"go", map[string]string{"f": "{{ render \"f\" . }}"}, "f:1:1: it recurses too deep"},
		"go, render one another": {"go", map[string]string{"f": `{{ render "d/p" . }}`, "d/p": `{{ render "f" . }}`}, "it recurses too deep"},
		"a partial fails":        {"go", map[string]string{"f": `{{ render "d/p" . }}`, "d/p": "\n{{ fail \"so\" }}"}, "d/p:2:4: `fail \"so\"`: error calling fail: so"},
	} {
		t.Run(name, func(t *testing.T) {
			s := setOf(tc.engine, tc.texts)
			if _, err := s.Render(t.Context(), "f"); err == nil || !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// One template that is stopped does not take the steps of the next, but all
// share what they may give.
func TestSetGoesOn(t *testing.T) {
	s := setOf("jet", map[string]string{"a": "[[ range ints(0, 1000000000) ]][[ end ]]", "b": strings.Repeat("x", 600)})
	if _, err := s.Render(t.Context(), "a"); err == nil {
		t.Error("no error")
	}
	if text, err := s.Render(t.Context(), "b"); err != nil || len(text) != 600 {
		t.Error(len(text), err)
	}
	if _, err := s.Render(t.Context(), "b"); err == nil {
		t.Error("600 bytes twice are not too long")
	}
}

func TestSetWrites(t *testing.T) {
	s := setOf("jet", map[string]string{"f": `[[ write("a", "1") ]][[ write("/d/../b", "2") ]][[ write("a", "3") ]]`})
	text, err := s.Render(t.Context(), "f")
	if err != nil || text != "" || !maps.Equal(s.Written(), map[string]string{"a": "3", "b": "2"}) {
		t.Errorf("%q, %v, %v", text, err, slices.Sorted(maps.Keys(s.Written())))
	}
	for _, path := range []string{"", ".", "..", "../a", "/../a", "a/../../b"} {
		s := setOf("jet", map[string]string{"f": `[[ write("` + path + `", "") ]]`})
		if _, err := s.Render(t.Context(), "f"); err == nil {
			t.Errorf("%q was written", path)
		}
	}
}
