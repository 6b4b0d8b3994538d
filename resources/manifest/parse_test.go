package manifest_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/manifest"
)

// TestUnreadable checks all reasons why Parse rejects a document.
func TestUnreadable(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"empty":             {"", "m.yaml:1:1: the document is empty"},
		"blank":             {" \n\n", "m.yaml:1:1: the document is empty"},
		"comment":           {"# nothing\n", "m.yaml:1:1: the document is empty"},
		"null":              {"null\n", "m.yaml:1:1: the document is empty"},
		"text":              {"hello\n", "m.yaml:1:1: a manifest must be a mapping, not a string (it begins with `muster:` or `data:`)"},
		"list":              {"- a\n", "m.yaml:1:1: a manifest must be a mapping, not a list (it begins with `muster:` or `data:`)"},
		"second document":   {"data: {}\n---\ndata: {}\n", "m.yaml:2:1: a second document begins here (put each document into a separate file)"},
		"empty second":      {"data: {}\n---\n", "m.yaml:2:1: a second document begins here (put each document into a separate file)"},
		"broken second":     {"data: {}\n---\n\tx: 1\n", "m.yaml:3:1: a tab cannot indent (use spaces)"},
		"duplicate":         {"data:\n  a: 1\n  b: 2\n  a: 3\n", "m.yaml:4:3: duplicate key `a`, first at m.yaml:2:3 (keep one of them)"},
		"duplicate text":    {"data:\n  8080: 1\n  \"8080\": 2\n", "m.yaml:3:3: duplicate key `8080`, first at m.yaml:2:3 (keep one of them)"},
		"duplicate of many": {"data: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, l: 1, m: 1, n: 1,\n  m: 2}\n", "m.yaml:2:3: duplicate key `m`, first at m.yaml:1:80 (keep one of them)"},
		"byte order mark":   {"\ufeffhello\n", "m.yaml:1:1: a manifest must be a mapping, not a string (it begins with `muster:` or `data:`)"},
		"utf-16":            {"\xff\xfed\x00", "m.yaml:1:1: the document is UTF-16, not UTF-8 (save it as UTF-8)"},
		"gzip":              {"\x1f\x8b\x08", "m.yaml:1:1: the document is a gzip archive, not text (give a bundle as a path, obj:// or http(s)://)"},
		"bad utf-8":         {"data:\n  a: ä\xffb\n", "m.yaml:2:7: the byte 0xff is not valid UTF-8 (save the document as UTF-8, or write bytes as `!!binary` with base64)"},
		"control":           {"data:\n  a: \x1b[0m\n", "m.yaml:2:6: the control character U+001B is not allowed in a document (write it as an escape in double quotes: \"\\x1b\")"},
		"nul":               {"data: \x00\n", "m.yaml:1:7: the control character U+0000 is not allowed in a document (write it as an escape in double quotes: \"\\x00\")"},
		"non-character":     {"data: \ufffe\n", "m.yaml:1:7: the control character U+FFFE is not allowed in a document (write it as an escape in double quotes: \"\\ufffe\")"},
		"tab":               {"data:\n\ta: 1\n", "m.yaml:2:1: a tab cannot indent (use spaces)"},
		"tab after blanks":  {"data:\n  a: 1\n  \tb: 2\n", "m.yaml:3:3: a tab cannot indent (use spaces; put a text that begins with a tab in double quotes: `\"\\t…\"`)"},
		"tab indents text":  {"data:\n  a: |\n\tx\n", "m.yaml:3:1: a tab cannot indent (use spaces; put a text that begins with a tab in double quotes: `\"\\t…\"`)"},
		"other YAML":        {"# old\n%YAML 1.3\n---\ndata: {}\n", "m.yaml:2:1: this version of YAML is not known (write `%YAML 1.2`, or leave the line out)"},
		"colon":             {"data:\n  a: b: c\n", "m.yaml:2:7: a `:` is not allowed here (quote the text that holds it, or check the indentation)"},
		"indentation":       {"data:\n  a: 1\n b: 2\n", "m.yaml:3:2: invalid YAML: did not find expected key (check the indentation of this line and the one before, and that a key ends with `: `)"},
		"no colon":          {"data:\n  a: 1\n  b\n  c: 2\n", "m.yaml:3:3: invalid YAML: could not find expected ':' (check the indentation of this line and the one before, and that a key ends with `: `)"},
		"at sign":           {"data:\n  a: @x\n", "m.yaml:2:3: invalid YAML: found character that cannot start any token (quote text that begins with `@`, a backtick or `%`; indent with spaces)"},
		"open quote":        {"data:\n  a: \"x\n  b: 1\n", "m.yaml:2:3: the quote that is opened here is never closed (close it, or put the text into a block: `key: |`)"},
		"open bracket":      {"data:\n  a: [1, 2\n  b: 1\n", "m.yaml:3:3: invalid YAML: did not find expected ',' or ']' (a brace or bracket before this place is not closed; quote an expression that begins with a brace)"},
		"open brace":        {"data: {a: 1\n", "m.yaml:1:1: invalid YAML: did not find expected ',' or '}' (a brace or bracket before this place is not closed; quote an expression that begins with a brace)"},
		"unknown alias":     {"data:\n  a: *nope\n", "m.yaml:2:6: unknown alias `*nope` (name it before with `&nope`, or quote a text that begins with `*`)"},
		"alias in itself":   {"data: &a\n  b: *a\n", "m.yaml:2:6: the alias `*a` is inside its own anchor"},
		"alias cycle":       {"data: &a\n  b: &b\n    c: *a\n    d: *b\n", "m.yaml:3:8: the alias `*a` is inside its own anchor\nm.yaml:4:8: the alias `*b` is inside its own anchor"},
		"merge of text":     {"data:\n  <<: x\n", "m.yaml:2:7: `<<` takes a mapping or a list of mappings, not a string (write `<<: *anchor`)"},
		"mapping key":       {"data:\n  ? [a]\n  : 1\n", "m.yaml:2:5: a key must be text, not a list"},
		"unquoted braces":   {"data:\n  a: {{ Data.x }}\n", "m.yaml:2:7: a key must be text, not a mapping (an expression that begins with a brace must be quoted: \"{{ … }}\")"},
		"null key":          {"data:\n  ~: 1\n", "m.yaml:2:3: a key must not be empty (write the key before the colon, in quotes if it is `null` or `~`)"},
		"custom tag":        {"data:\n  a: !vault x\n", "m.yaml:2:6: the tag `!vault` has no meaning here (remove the tag, or quote the text if it begins with `!`)"},
		"custom list tag":   {"data: !x [1]\n", "m.yaml:1:7: the tag `!x` has no meaning here (remove the tag, or quote the text if it begins with `!`)"},
		"custom map tag":    {"data: !!set {a}\n", "m.yaml:1:7: the tag `!!set` has no meaning here (remove the tag, or quote the text if it begins with `!`)"},
		"bad int":           {"data: {a: !!int x}\n", "m.yaml:1:11: \"x\" is no !!int"},
		"bad float":         {"data: {a: !!float x}\n", "m.yaml:1:11: \"x\" is no !!float"},
		"bad bool":          {"data: {a: !!bool x}\n", "m.yaml:1:11: \"x\" is no !!bool"},
		"bad null":          {"data: {a: !!null x}\n", "m.yaml:1:11: \"x\" is no !!null"},
		"bad binary":        {"data:\n  a: !!binary '*'\n", "m.yaml:2:6: `!!binary` does not hold base64: illegal base64 data at input byte 0"},
		"json duplicate":    {"{\"data\": {\"a\": 1,\n  \"a\": 2}}", "m.yaml:2:3: duplicate key `a`, first at m.yaml:1:11 (keep one of them)"},
		"json surrogate":    {"{\"data\": {\"a\": \"\\ud800\"}}", "m.yaml:1:16: the text holds half of a surrogate pair (write the whole pair, or the character itself)"},
		"several at a time": {"data:\n  a: !x 1\n  a: 2\n  ~: 3\n", lines("m.yaml:2:6: the tag `!x` has no meaning here (remove the tag, or quote the text if it begins with `!`)", "m.yaml:3:3: duplicate key `a`, first at m.yaml:2:3 (keep one of them)", "m.yaml:4:3: a key must not be empty (write the key before the colon, in quotes if it is `null` or `~`)")},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := manifest.Parse("m.yaml", []byte(tc.in))
			if err == nil {
				t.Fatalf("parsed as %v, want %s", doc.Name(), tc.want)
			}
			if err.Error() != tc.want {
				t.Errorf("got  %s\nwant %s", err, tc.want)
			}
		})
	}
}

// TestBombs checks small documents with a high cost.
func TestBombs(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("data:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		n := string(rune('a' + i))
		p := string(rune('a' + i - 1))
		if i == 1 {
			p = "a0"
		}
		laughs.WriteString("  " + n + ": &" + n + " [" + strings.TrimSuffix(strings.Repeat("*"+p+", ", 9), ", ") + "]\n")
	}
	for name, tc := range map[string]struct{ in, want string }{
		"size":        {"data:\n  a: " + strings.Repeat("x", 100<<20), "m.yaml: the document has 104857611 bytes; the limit is 16777216 (put large files beside the manifest in a bundle, and use `source`)"},
		"aliases":     {laughs.String(), "the aliases of the document expand to too much: more than 200000 values or 64 MiB"},
		"alias bytes": {"data:\n  a: &a " + strings.Repeat("x", 1<<20) + "\n  b: [" + strings.Repeat("*a, ", 100) + "]\n", "the aliases of the document expand to too much"},
		"merges":      {"data:\n  a: &a {" + strings.Repeat("x", 1) + ": 1}\n  b:\n" + strings.Repeat("    - {<<: ["+strings.Repeat("*a, ", 1000)+"]}\n", 300), "the aliases of the document expand to too much"},
		"values":      {"data: [" + strings.Repeat("[],", 4<<20) + "]", "m.yaml: the document seems to contain more than 1000000 values (split it, or put large files beside the manifest in a bundle, and use `source`)"},
		"after block": {"data:\n- a: |\n    x\n  b: [" + strings.Repeat("[],", 2<<20) + "]", "m.yaml: the document seems to contain more than 1000000 values"},
		"after text":  {"--- |\nx\n---\n- [" + strings.Repeat("[],", 2<<20) + "]", "m.yaml: the document seems to contain more than 1000000 values"},
		"json values": {"{\"data\": [" + strings.Repeat("[],", 4<<20) + "[]]}", "m.yaml: the document seems to contain more than 1000000 values"},
		"long tag":    {"data: !" + strings.Repeat("x", 1<<20), "the tag `!xxx"},
		"flow depth":  {"data: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "m.yaml:1:107: nested deeper than 100 levels"},
		"block depth": {"data:\n  " + strings.Repeat("- ", 5000) + "x", "nested deeper than 100 levels"},
		"open depth":  {"data: " + strings.Repeat("[", 500_000), "exceeded max depth of 10000"},
		"json depth":  {"{\"data\": " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}", "nested deeper than 100 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Parse("m.yaml", []byte(tc.in))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %.300v\nwant %s", err, tc.want)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("%d bytes of problems", len(err.Error()))
			}
			if err != nil && strings.Count(err.Error(), "\n") > 3 {
				t.Errorf("%d lines of problems", strings.Count(err.Error(), "\n"))
			}
		})
	}
}

// TestLargeBlock checks a document that only seems to exceed a limit.
func TestLargeBlock(t *testing.T) {
	csv := strings.Repeat(strings.Repeat("1,", 100)+"\n", 15000)
	in := "data:\n  csv: |\n    " + strings.TrimSuffix(strings.ReplaceAll(csv, "\n", "\n    "), "    ") + "  other: 1\n"
	if _, err := manifest.Parse("m.yaml", []byte(in)); err != nil {
		t.Fatal(err)
	}
}
