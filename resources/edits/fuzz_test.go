package edits_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/edits"
)

func valueOf(text string) edits.Value {
	var v edits.Value
	v.UnmarshalValue(document.Value{Kind: document.String, Text: text})

	return v
}

// tryTwice applies a setting and returns the content, or false for a content or properties that are refused.
func tryTwice(t *testing.T, spec *edits.SettingSpec, content string) (string, bool) {
	t.Helper()
	text, err := edits.Parse(content)
	if err != nil {
		return "", false
	}
	got, valid := editTwice(t, spec, text)
	after := got.After.String()
	if valid && got.Change.Message == "" && after != content {
		t.Fatalf("%q became %q without a change", content, after)
	}

	return after, valid
}

// untouched returns the lines that an edit of a key must leave alone: no line with the key, and none that may
// continue one.
func untouched(content, section, key string) []string {
	var out []string
	continued := false
	for _, l := range lines(content) {
		keep := !continued && l != "" && !strings.ContainsAny(l[:1], " \t") && !strings.Contains(l, key) && l != "["+section+"]"
		continued = strings.HasSuffix(l, `\`)
		if keep {
			out = append(out, l)
		}
	}

	return out
}

func fuzzLines(f *testing.F, format string) {
	f.Add("a = 1\n[s]\nb=2\n  c\n; d = 3\n", "s", "d", "4", false)
	f.Add("k v\nk=w\r\n#k=x", "", "k", "x y", true)
	f.Add("\uFEFF[a]\\\nb: c \\\nd", "a", "b", "\xff", false)
	f.Fuzz(func(t *testing.T, content, section, key, value string, absent bool) {
		spec := &edits.SettingSpec{Format: format, Section: section, Key: valueOf(key), Value: valueOf(value)}
		spec.Name, spec.Ensure = "/f", "present"
		if format != "ini" {
			spec.Section = ""
		}
		if absent {
			spec.Ensure = "absent"
		}
		after, ok := tryTwice(t, spec, content)
		if !ok {
			return
		}
		if before, rest := untouched(content, section, key), untouched(after, section, key); !slices.Equal(before, rest) {
			t.Fatalf("%q became %q", content, after)
		}
	})
}

// FuzzINI checks that a setting is idempotent, and that it leaves all other lines alone.
func FuzzINI(f *testing.F) { fuzzLines(f, "ini") }

// FuzzKeyValue is FuzzINI for files without sections.
func FuzzKeyValue(f *testing.F) { fuzzLines(f, "keyvalue") }

// FuzzJSON checks that a setting is idempotent, that it changes only its key, and that a new key leaves nothing
// behind when it goes.
func FuzzJSON(f *testing.F) {
	f.Add(daemon, "debug", `{"a": [1, 2]}`)
	f.Add(`{"a":1,"b":{"c":"\u00e9"}}`, "b", `"x"`)
	f.Add("\uFEFF{\r\n\t\"a\" : 1.0\r\n}", "z", "[]")
	f.Fuzz(func(t *testing.T, content, key, value string) {
		v, problems := document.Read("", []byte(value), int64(len(value)))
		if len(problems) > 0 || !json.Valid([]byte(value)) || !utf8.ValidString(key) {
			return
		}
		spec := &edits.SettingSpec{Format: "json", Key: valueOf(key)}
		spec.Value.UnmarshalValue(v)
		spec.Name, spec.Ensure = "/f", "present"
		after, ok := tryTwice(t, spec, content)
		if !ok {
			return
		}
		before, rest := decoded(t, content), decoded(t, after)
		_, was := before[key]
		if _, is := rest[key]; !is {
			t.Fatalf("%q has no key %q", after, key)
		}
		delete(before, key)
		delete(rest, key)
		if !reflect.DeepEqual(before, rest) {
			t.Fatalf("%q became %q", content, after)
		}
		spec.Ensure = "absent"
		gone, _ := tryTwice(t, spec, after)
		if !was && len(before) > 0 && gone != content {
			t.Fatalf("%q became %q, and then %q", content, after, gone)
		}
	})
}

// decoded returns an object with the texts of its numbers.
func decoded(t *testing.T, content string) map[string]any {
	t.Helper()
	out := map[string]any{}
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(content, "\uFEFF")))
	d.UseNumber()
	if err := d.Decode(&out); err != nil && strings.TrimSpace(content) != "" {
		t.Fatal(err)
	}

	return out
}
