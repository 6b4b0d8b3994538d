package document

import (
	"strings"
	"testing"
)

// TestBrokenJSON checks the problems of invalid JSON and their remedies.
func TestBrokenJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": x}`:        `f.json:1:7: invalid JSON: unexpected 'x' where a value begins (put text in double quotes; the last item has no comma)`,
		`{"a": 1,}`:       `f.json:1:9: invalid JSON: unexpected '}' where a key begins (put keys in double quotes; the last entry has no comma)`,
		`{a: 1}`:          `f.json:1:2: invalid JSON: unexpected 'a' where a key begins (put keys in double quotes; the last entry has no comma)`,
		`{"a" 1}`:         `f.json:1:6: invalid JSON: unexpected '1' after a key (a colon is missing before it)`,
		`{"a": [1 2]}`:    `f.json:1:10: invalid JSON: unexpected '2' after an item (a comma or a closing bracket is missing before it)`,
		`{"a": [1,]}`:     `f.json:1:10: invalid JSON: unexpected ']' where a value begins (put text in double quotes; the last item has no comma)`,
		`{"a": 1 "b"}`:    `f.json:1:9: invalid JSON: unexpected '"' after a value (a comma or a closing brace is missing before it)`,
		`{} x`:            `f.json:1:4: invalid JSON: unexpected 'x' after the document (a file holds one document)`,
		`{"a": "b`:        `f.json:1:8: invalid JSON: it ends too early (a bracket, brace or quote is not closed)`,
		`{"a": "\x"}`:     `f.json:1:9: invalid JSON: unexpected 'x' in an escape of text (write a backslash as \\)`,
		"{\"a\": \"\n\"}": `f.json:1:8: invalid JSON: unexpected '\n' in text (write it as an escape, such as \n)`,
		`{"a": trux}`:     `f.json:1:10: invalid JSON: unexpected 'x' in a word (put text in double quotes)`,
		`{"a": 01}`:       `f.json:1:8: invalid JSON: unexpected '1' after a value (a comma or a closing brace is missing before it)`,
		`{"a": -x}`:       `f.json:1:8: invalid JSON: unexpected 'x' in a number (put text in double quotes)`,
	} {
		_, problems := Read("f.json", []byte(in), 1000)
		if got := problems.Error(); got != want {
			t.Errorf("%s is\n%s, want\n%s", in, got, want)
		}
		if strings.Contains(problems.Error(), "invalid character") {
			t.Errorf("%s: %v", in, problems)
		}
	}
}
