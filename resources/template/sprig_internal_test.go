package template

import (
	"reflect"
	"strings"
	"testing"
	"text/template"
)

// TestBounds calls functions at their bounds, which end an action with an error, and below
// them.
func TestBounds(t *testing.T) {
	t.Parallel()
	const far = "it would make more than is allowed"
	for text, want := range map[string]string{
		`{{ repeat 3 "ab" }}`:                                   "ababab",
		`{{ repeat 16777217 "a" }}`:                             far,
		`{{ "a-b" | replace "-" "+" }}`:                         "a+b",
		`{{ indent 2 "a\nb" }}`:                                 "  a\n  b",
		`{{ indent 16777217 "a" }}`:                             far,
		`{{ until 3 }}`:                                         "[0 1 2]",
		`{{ until 1000001 }}`:                                   far,
		`{{ untilStep 0 2000001 2 | len }}`:                     far,
		`{{ seq 1 2 5 }}`:                                       "1 3 5",
		`{{ seq 1 2000000 }}`:                                   far,
		`{{ list 1 2 | join "," }}`:                             "1,2",
		`{{ printf "%05d" 7 }}`:                                 "00007",
		`{{ printf "%100000d" 7 }}`:                             far,
		`{{ printf "%*d" 100000 7 }}`:                           far,
		`{{ $d := dict "a" 1 }}{{ set $d "b" 2 | keys }}`:       "[a b]",
		`{{ $d := dict }}{{ set $d "a" (list (dict "b" $d)) }}`: "a mapping cannot hold itself",
	} {
		parsed, err := template.New("x").Funcs(sprigFunctions()).Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := parsed.Execute(&out, nil); err != nil {
			out.Reset()
			out.WriteString(err.Error())
		}
		if got := out.String(); got != want && !strings.HasSuffix(got, ": "+want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestBoundsOfJet calls the replacements of Jet functions.
func TestBoundsOfJet(t *testing.T) {
	t.Parallel()
	if text, err := repeatText("ab", 2); err != nil || text != "abab" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := replaceText("aXaX", "X", "-", 1); err != nil || text != "a-aX" {
		t.Errorf("%q, %v", text, err)
	}
	_, negative := repeatText("a", -1)
	_, long := replaceText(strings.Repeat("a", 1<<13), "a", strings.Repeat("b", 1<<12), -1)
	d := map[string]any{}
	holder := checkHolder(reflect.ValueOf(d), reflect.ValueOf([]any{d}))
	other := checkHolder(reflect.ValueOf(d), reflect.ValueOf([]any{map[string]any{}}))
	if negative == nil || long == nil || holder == nil || other != nil {
		t.Error(negative, long, holder, other)
	}
}
