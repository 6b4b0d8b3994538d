package facts

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       map[string]any
	}{
		"json":                   {"f.json", `{"a": {"b": [1, true, null, "x"]}}`, map[string]any{"a": map[string]any{"b": []any{1.0, true, nil, "x"}}}},
		"yaml":                   {"f.yaml", "a:\n  b: [1, true, null, x, 1.5]\n", map[string]any{"a": map[string]any{"b": []any{1.0, true, nil, "x", 1.5}}}},
		"keys that are no text":  {"f.yaml", "1: one\ntrue: yes\n", map[string]any{"1": "one", "true": "yes"}},
		"times":                  {"f.yaml", "day: 2024-05-06\nat: 2024-05-06T07:08:09Z\n", map[string]any{"day": "2024-05-06", "at": "2024-05-06T07:08:09Z"}},
		"large numbers":          {"f.yaml", "n: 18446744073709551615\n", map[string]any{"n": float64(1 << 64)}},
		"an alias":               {"f.yml", "a: &x {k: 1}\nb: *x\n", map[string]any{"a": map[string]any{"k": 1.0}, "b": map[string]any{"k": 1.0}}},
		"a number that is none":  {"f.yaml", "a: [.nan, 0644, 0x1F, True]\n", map[string]any{"a": []any{".nan", "0644", "0x1F", true}}},
		"empty json":             {"f.json", " \n", map[string]any{}},
		"empty yaml":             {"f.yaml", "# nothing yet\n", map[string]any{}},
		"json null":              {"f.json", "null\n", map[string]any{}},
		"json with space around": {"f.json", "\n{\"a\": 1}\n\n", map[string]any{"a": 1.0}},
	} {
		if got, err := Parse(c.file, []byte(c.text)); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestParseErrorsHaveTheirPlace tests positions in facts; tests of the document reader cover positions in
// general.
func TestParseErrorsHaveTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"json syntax":        {"d/f.json", "{\n  \"a\": 1,\n  b\n}", "d/f.json:3:3: invalid JSON: "},
		"json cut short":     {"f.json", "{\n\"a\": 1", "f.json:2:6: invalid JSON: it ends too early"},
		"json with more":     {"f.json", "{}\n  {}", "f.json:2:3: invalid JSON: unexpected '{' after the document (a file holds one document)"},
		"json list":          {"f.json", "[1]", "f.json:1:1: facts must be a mapping, not a list (write them as name: value)"},
		"yaml syntax":        {"f.yaml", "a: 1\nb: [1\n", "f.yaml:2:1: invalid YAML: "},
		"yaml scalar":        {"f.yaml", "text", "f.yaml:1:1: facts must be a mapping"},
		"yaml in json":       {"f.json", "a: 1\n", "f.json:1:1: invalid JSON: "},
		"a number too large": {"f.json", "{\"a\": 1e999}", "f.json: json: cannot unmarshal number 1e999"},
	} {
		_, err := Parse(c.file, []byte(c.text))
		var p model.Problem
		if !errors.As(err, &p) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
