package manifest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/manifest"
)

// TestText checks texts in every style of YAML, byte for byte.
func TestText(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"literal":                  {"|\n  a\n  b\n", "a\nb\n"},
		"literal strip":            {"|-\n  a\n  b\n\n", "a\nb"},
		"literal keep":             {"|+\n  a\n\n\n", "a\n\n\n"},
		"literal trailing blanks":  {"|\n  a  \n  b \t\n", "a  \nb \t\n"},
		"literal indicator tab":    {"|2\n  \ta\n", "\ta\n"},
		"literal indicator":        {"|2\n    a\n   b\n", "  a\n b\n"},
		"literal indicator keep":   {"|2+\n   a\n\n", " a\n\n"},
		"literal leading newlines": {"|\n\n\n  a\n", "\n\na\n"},
		"literal more indented":    {"|\n  a\n    b\n  c\n", "a\n  b\nc\n"},
		"literal tabs":             {"|\n  a\n  \tb\tc\n", "a\n\tb\tc\n"},
		"literal hash":             {"|\n  # a\n  b # c\n", "# a\nb # c\n"},
		"literal header comment":   {"| # why\n  a\n", "a\n"},
		"literal dashes":           {"|\n  ---\n  ...\n", "---\n...\n"},
		"literal colon":            {"|\n  a: b\n  - c\n", "a: b\n- c\n"},
		"literal blank line":       {"|\n  a\n     \n  b\n", "a\n   \nb\n"},
		"literal nothing":          {"|\n", ""},
		"literal only newlines":    {"|+\n\n\n", "\n\n"},
		"literal crlf file":        {"|\r\n  a\r\n  b\r\n", "a\nb\n"},
		"literal unicode":          {"|\n  ä€𝄞\u00a0\u200b\ufeffx\n", "ä€𝄞\u00a0\u200b\ufeffx\n"},
		"literal next line":        {"|\n  a\u0085b\n  c\n", "a\u0085b\nc\n"},
		"literal line separator":   {"|\n  a\u2028b\u2029c\n", "a\u2028b\u2029c\n"},
		"literal private use":      {"|\n  a\u2028b\ue000\ue001\ue002\n", "a\u2028b\ue000\ue001\ue002\n"},
		"folded":                   {">\n  a\n  b\n\n  c\n", "a b\nc\n"},
		"folded strip":             {">-\n  a\n  b\n", "a b"},
		"folded keep":              {">+\n  a\n\n", "a\n\n"},
		"folded more indented":     {">\n  a\n    b\n  c\n", "a\n  b\nc\n"},
		"folded line separator":    {">\n  a\u2028b\n  c\n", "a\u2028b c\n"},
		"double quoted":            {`"a\r\nb\tc\0\x1b\u00e4\U0001d11e\"\\"`, "a\r\nb\tc\x00\x1bä𝄞\"\\"},
		"double quoted breaks":     {`"\N\L\P\_"`, "\u0085\u2028\u2029\u00a0"},
		"double quoted folded":     {"\"a\n  b\\\n  c\n\n  d\"", "a bc\nd"},
		"double quoted blanks":     {`"  a  "`, "  a  "},
		"single quoted":            {`'it''s \n'`, `it's \n`},
		"single quoted separator":  {"'a\u2028b\u0085c'", "a\u2028b\u0085c"},
		"plain":                    {"a b", "a b"},
		"plain over lines":         {"a\n  b", "a b"},
		"plain separator":          {"a\u2028b", "a\u2028b"},
		"plain url":                {"http://x:80/y#z", "http://x:80/y#z"},
		"empty double":             {`""`, ""},
		"octal":                    {"0644", "0644"},
		"trailing zero":            {"1.10", "1.10"},
		"leading zero":             {"0123", "0123"},
		"yes":                      {"yes", "yes"},
		"Off":                      {"Off", "Off"},
		"hex":                      {"0x1F", "0x1F"},
		"underscores":              {"1_000", "1_000"},
		"exponent":                 {"1e3", "1e3"},
		"infinity":                 {".inf", ".inf"},
		"time":                     {"2001-01-01", "2001-01-01"},
		"sexagesimal":              {"12:30:45", "12:30:45"},
		"big":                      {"123456789012345678901234567890", "123456789012345678901234567890"},
		"true":                     {"True", "True"},
		"tagged text":              {"!!str 0644", "0644"},
		"tagged int":               {"!!int 0x10", "0x10"},
		"binary":                   {"!!binary aGVsbG8A/w==", "hello\x00\xff"},
		"binary block":             {"!!binary |\n  aGVs\n  bG8=\n", "hello"},
		"anchored":                 {"&a x", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			in := strings.ReplaceAll(tc.in, "\n  ", "\n              ")
			if got := one(t, content(in), options(), manifest.Inputs{}).Content; got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// TestFollowing checks text after a value that a parser may read as a part of the value.
func TestFollowing(t *testing.T) {
	for name, in := range map[string]string{
		"literal":            "|\n  a\n# comment\n",
		"literal and blanks": "|\n  a\n\n\n",
		"literal comment":    "|\n  a\n            # comment\n",
		"folded":             ">\n  a\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			spec := one(t, content(strings.ReplaceAll(in, "\n  a", "\n              a"))+"            owner: root\n", options(), manifest.Inputs{})
			if spec.Content != "a\n" || spec.Owner != "root" {
				t.Errorf("got %q, owner %q", spec.Content, spec.Owner)
			}
		})
	}
}

// TestJSON reads a manifest in JSON that is not valid YAML.
func TestJSON(t *testing.T) {
	in := "{\n\t\"muster\": {\"resources\": [{\"file\": [{\"/f\": {\"content\": \"\\ud83d\\ude00 \\/ \u2028\", \"count\": 5, \"owner\": 0644e0, \"mode\": \"0644\"}}]}]}}"
	in = strings.Replace(in, "0644e0", "1.10", 1)
	spec := one(t, in, options(), manifest.Inputs{})
	if spec.Content != "😀 / \u2028" || spec.Count != 5 || spec.Owner != "1.10" {
		t.Errorf("got %+v", spec)
	}
	got := outcome(t, "{\"muster\": {\"resources\": [{\"file\": [\n  {\"/ä\": {\"ownr\": \"${ nope }\"}}]}]}}", options(), manifest.Inputs{})
	want := lines("m.yaml:2:11: unknown property `ownr` of file (did you mean `owner`?)",
		"m.yaml:2:20: the expression is not valid: unknown name `nope` (write `$${` for a literal `${`)")
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAliases checks anchors, aliases and merge keys.
func TestAliases(t *testing.T) {
	in := `
data: &common {x: 1}
muster:
  resources:
    - file:
        - /a: &base {owner: root, mode: 0644, env: {A: "1"}}
        - /b: *base
        - /c: {<<: *base, mode: "0600"}
        - /d:
            <<: [{owner: first}, *base]
            count: 2
        - /e: {"<<": literal}
`
	got := outcome(t, in, options(), manifest.Inputs{})
	want := "m.yaml:12:16: unknown property `<<` of file"
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	got = outcome(t, strings.Replace(in, `        - /e: {"<<": literal}`, "", 1), options(), manifest.Inputs{})
	want = lines(
		`file {"name":"/a","ensure":"present","mode":"0644","owner":"root","env":{"A":"1"}}`,
		`file {"name":"/b","ensure":"present","mode":"0644","owner":"root","env":{"A":"1"}}`,
		`file {"name":"/c","ensure":"present","mode":"0600","owner":"root","env":{"A":"1"}}`,
		`file {"name":"/d","ensure":"present","mode":"0644","owner":"first","count":2,"env":{"A":"1"}}`)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzText writes any text in several styles and reads it back.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", " a", "\n", "a\n", "\n a\n\n", "\ta", "# x\n", "---\n", "a\u2028b", "a\u0085\n", "\ufeff", "ä", "'\"\\", "  \n a", "a\n \n", "%", "- a\n", "{{", "a: b\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted, err := json.Marshal(s)
		if err != nil || strings.ContainsRune(s, '\ufffd') {
			return
		}
		// JSON is read as JSON. Double quotes and literal blocks are read as YAML.
		check(t, s, `{"data": {"x": `+string(quoted)+`}}`)
		for _, r := range s {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 && r != 0x85 || r >= 0xfffe && r <= 0xffff || r == '\ufffd' {
				return
			}
		}
		check(t, s, fmt.Sprintf("data:\n  x: |2+\n%s", indented(s)))
		check(t, s, fmt.Sprintf("data:\n  x: '%s'\n", strings.ReplaceAll(strings.ReplaceAll(s, "'", "''"), "\n", " ")))
	})
}

func indented(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("    " + line)
	}

	return b.String()
}

func check(t *testing.T, want, in string) {
	t.Helper()
	if strings.Contains(in, "'") && strings.HasPrefix(in, "data:\n  x: '") {
		want = strings.ReplaceAll(want, "\n", " ")
	}
	doc, err := manifest.Parse("m.yaml", []byte(in))
	if err != nil {
		t.Fatalf("%q: %v", in, err)
	}
	// This test does not check expressions.
	escaped := strings.ContainsAny(want, "{")
	data, err := manifest.NewLoader(options()).ResolveData(t.Context(), doc, manifest.Inputs{})
	if escaped {
		return
	}
	if err != nil {
		t.Fatalf("%q: %v", in, err)
	}
	if data["x"] != want {
		t.Fatalf("%q\ngot  %q\nwant %q", in, data["x"], want)
	}
}
